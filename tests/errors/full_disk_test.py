#!/usr/bin/env python3
"""A disk that is full at whichever write: `tune` ends with a message and does not hang. The test uses disks of many sizes."""

import sys

import graphs
from harness import Scratch, expect, skip

# Disk sizes in KiB: the smallest is too small for the schema, and the largest is large enough for everything. On a busy machine a search keeps
# more (a second cover's kernels), so the last sizes are far larger.
SIZES = [*range(100, 1000, 60), 2000, 4000]


def attempt(scratch, size):
    folder = scratch.mounted(f"disk{size}", f"size={size}k")
    if folder is None:
        skip("mounting a small disk needs root")
    done = scratch.run("warploom", "tune", "scalar.graph", "--trials", 4, "--store", folder / "store.db", deadline=60, expect=None)
    if done.code != 0:
        expect(done.code == 7, f"{size} KiB: exit code {done.code}\n{done.err}")
        said = [line for line in done.err.splitlines() if line.startswith("warploom: error: ")]
        expect(said and "disk is full" in said[0], f"{size} KiB: {done.err}")
    return done.code


def main():
    with Scratch() as scratch:
        (scratch.root / "scalar.graph").write_text(graphs.SCALAR)
        codes = []
        for size in SIZES:
            codes.append(attempt(scratch, size))
            if codes[-1] == 0:
                break
        expect(codes[0] == 7 and codes[-1] == 0, f"exit codes by size: {codes}")
        print(f"{len(codes) - 1} disks too small, each said so")


if __name__ == "__main__":
    sys.exit(main())
