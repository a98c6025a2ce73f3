#!/usr/bin/env python3
"""Fails on a C++ file that clang-format would change. `make format` fixes it. Releases of clang-format format differently, so only the one
that Debian 12 has is asked."""

import re
import subprocess
import sys

import tree


RELEASE = 14
SKIPPED = 77  # the exit status of a test that ctest counts as skipped


def main():
    said = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    release = re.search(r"version (\d+)", said)
    if release is not None and int(release[1]) != RELEASE:
        print(f"format: clang-format {release[1]} is here, and formats differently from {RELEASE}, so nothing is checked")
        return SKIPPED
    files = tree.files("*.h", "*.cpp")
    problems = []
    if files:
        command = ["clang-format", "--dry-run", "--Werror", *files]
        done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True)
        changed = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error: " in line})
        problems = [f"{file}: not formatted, run `make format`" for file in changed]
        if done.returncode != 0 and not problems:
            problems = [done.stderr.strip()]
    return tree.report("format", problems, len(files))


if __name__ == "__main__":
    sys.exit(main())
