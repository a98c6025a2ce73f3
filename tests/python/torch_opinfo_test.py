#!/usr/bin/env python3
"""PyTorch's own samples of its operators through the backend, with extremes among the values and at other strides: none differs from eager,
but for what torch_rules.py has. Needs PyTorch, and the package expecttest."""

import subprocess
import sys

from harness import SOURCE, Scratch, expect, skip, torch_python


def main():
    python = torch_python()
    if subprocess.run([python, "-c", "import expecttest"], capture_output=True).returncode != 0:
        skip("there is no expecttest")
    with Scratch() as scratch:
        # A word that all names have: results of some operators are not kept.
        command = [python, SOURCE / "bench/torch_backend/operators.py", "--only", ""]
        done = subprocess.run(command, env=scratch.environment, capture_output=True, text=True, timeout=7000)
        expect(done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
