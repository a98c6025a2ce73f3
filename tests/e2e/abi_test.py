#!/usr/bin/env python3
"""The C library's ABI is the one that client/c/warploom.abi describes, so that programs that were linked with an earlier release work with
this one. After an addition to the ABI, `abi_test.py --write` writes the description anew. An incompatible change needs another version
number of the shared object (cmake/install.cmake)."""

import pathlib
import re
import shutil
import subprocess
import sys

from harness import BIN, SOURCE, Scratch, expect, skip, tool

KEPT = SOURCE / "client/c/warploom.abi"
CHANGED = 4  # bit of abidiff's exit code for a changed ABI; the bits 1 and 2 are for a comparison that failed


def described(folder, header):
    """Returns a file with the ABI of the functions and types that a header declares, and the names of the functions. abidw reads the ABI
    from the debug information of a C library with empty functions, so that the ABI contains only what callers see."""
    declared = tool("gcc", "-E", "-P", header)
    functions = re.findall(r"[^;{}#]*\b(warploom_\w+)\s*\([^;{}]*\)\s*;", declared)
    bodies = re.sub(r"(\bwarploom_\w+\s*\([^;{}]*\))\s*;", r"\1 { __builtin_unreachable(); }", declared)
    unit, library, text = folder / "unit.c", folder / "libwarploom.so.1", folder / "now.abi"
    unit.write_text(bodies)
    tool("gcc", "-std=c11", "-g", "-w", "-fPIC", "-shared", f"-Wl,--version-script={SOURCE}/client/c/warploom.map", unit, "-o", library)
    tool("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", text, library)
    text.write_text(re.sub(r" path='[^']*'", "", text.read_text()))
    return text, set(functions)


def difference(kept, now):
    done = subprocess.run(["abidiff", kept, now], capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    if not shutil.which("abidw"):
        skip("there is no abidw (Debian's abigail-tools)")
    with Scratch() as scratch:
        header = SOURCE / "client/c/warploom.h"
        now, functions = described(scratch.root, header)
        exported = tool("nm", "-D", "--defined-only", BIN.parent / "libwarploom.so")
        exported = {line.split()[-1].partition("@")[0] for line in exported.splitlines()}
        missing = functions ^ {name for name in exported if name.startswith("warploom_")}
        expect(len(functions) > 20 and not missing, f"declared and not exported, or exported and not declared: {missing}")
        if "--write" in sys.argv:
            shutil.copy(now, KEPT)
            return
        code, said = difference(KEPT, now)
        expect(code == 0, f"{said}\nIf callers of the earlier release go on working, `{pathlib.Path(__file__).name} --write` keeps the new one")
        # The comparison must notice an incompatible change: here, a member of a struct moves.
        before, found, after = header.read_text().partition("size_t struct_size;")
        expect(found, "warploom.h has no struct to change")
        changed = scratch.root / "changed"
        changed.mkdir()
        (changed / "warploom.h").write_text(before + found + " int inserted[4];" + after)
        code, said = difference(KEPT, described(changed, changed / "warploom.h")[0])
        expect(code & CHANGED and not code & 3, f"a member that was inserted was not noticed: {code}\n{said}")


if __name__ == "__main__":
    main()
