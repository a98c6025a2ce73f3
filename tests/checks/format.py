#!/usr/bin/env python3
"""Fails on a C++ file that clang-format would change. `make format` fixes it."""

import subprocess
import sys

import tree


def main():
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
