#!/usr/bin/env python3
"""Fails on a source file that is too long to contain one idea. Split such a file by idea, not by size."""

import sys

import tree

LIMIT = 500


def main():
    files = tree.files("*.h", "*.cpp", "*.py", "*.sh", "*.cmake", "*.proto", "*.def", "Makefile")
    problems = []
    for file in files:
        lines = len((tree.ROOT / file).read_text(errors="replace").splitlines())
        if lines > LIMIT:
            problems.append(f"{file}: {lines} lines, at most {LIMIT} are allowed")
    return tree.report("file size", problems, len(files))


if __name__ == "__main__":
    sys.exit(main())
