#!/usr/bin/env python3
"""kernels_test.py ARCHITECTURE ORDER FILTER: runs the tests of emulated_test that FILTER names (as --gtest_filter) on the emulator, with
the waves of a block in the order forward, backward or random."""

import subprocess
import sys

import emulator
from harness import BIN, PATIENCE

SECONDS = 3000


def main(architecture, order, which):
    emulator.make_ready()
    command = emulator.command(architecture, BIN / "emulated_test", f"--gtest_filter={which}")
    process = subprocess.Popen(command, env=dict(emulator.environment(), EMU_ORDER=order), start_new_session=True)
    with emulator.ended(process):
        return process.wait(timeout=SECONDS * PATIENCE)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
