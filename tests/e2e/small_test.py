#!/usr/bin/env python3
"""Edge cases of graphs work: a scalar, an empty graph, an output that is an input, a constant."""

import graphs
from harness import Scratch, digest_of, expect


def main():
    with Scratch() as scratch:
        for name in ("SCALAR", "ZERO_SIZE", "ZERO_REDUCED", "PASS_THROUGH", "CONSTANT"):
            file = scratch.root / f"{name.lower()}.graph"
            file.write_text(getattr(graphs, name))
            bundle, again = scratch.path(f"{name}.bundle"), scratch.path(f"{name}.again")
            scratch.run("warploom", "tune", file, "--trials", 2, "--out", bundle)
            result = scratch.run("warploom", "run", bundle, "--check", "--repeat", 3, "--json", "-").json()
            expect(result["correct"], f"{name}: {result}")
            expect(len(result["time"]["samples_ns"]) == 3, f"{name}: {result}")
            scratch.run("warploom", "tune", file, "--trials", 2, "--out", again)
            expect(digest_of(bundle) == digest_of(again), f"{name}: the bundles differ")
            print(name, "ok", flush=True)


if __name__ == "__main__":
    main()
