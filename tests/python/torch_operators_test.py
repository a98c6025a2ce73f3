#!/usr/bin/env python3
"""docs/torch-operators.md is up to date with tools/torch_operators.py. Needs PyTorch and the package expecttest."""

import subprocess
import sys

from harness import SOURCE, Scratch, expect, skip, torch_python


def main():
    python = torch_python()
    if subprocess.run([python, "-c", "import expecttest"], capture_output=True).returncode != 0:
        skip("there is no expecttest")
    with Scratch() as scratch:
        done = subprocess.run([python, SOURCE / "tools/torch_operators.py", "--check"], env=scratch.environment, capture_output=True, text=True, timeout=1500)
        expect(done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
