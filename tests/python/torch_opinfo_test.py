#!/usr/bin/env python3
"""PyTorch's own samples of its operators through the backend, also with extreme values and with other strides: no result is wrong
(bench/torch_backend/operators.py). Needs PyTorch and the package expecttest."""

import subprocess
import sys

from harness import SOURCE, Scratch, expect, skip, torch_python


def main():
    python = torch_python()
    if subprocess.run([python, "-c", "import expecttest"], capture_output=True).returncode != 0:
        skip("there is no expecttest")
    with Scratch() as scratch:
        # All names contain the empty word. With --only, the program writes no file of results.
        command = [python, SOURCE / "bench/torch_backend/operators.py", "--only", ""]
        done = subprocess.run(command, env=scratch.environment, capture_output=True, text=True, timeout=7000)
        expect(done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
