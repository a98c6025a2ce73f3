#!/usr/bin/env python3
"""PyTorch's own samples of its operators are run through the backend, also with extreme values and with other strides: no result is wrong
(bench/torch_backend/operators.py). Needs PyTorch and the package expecttest."""

from harness import torch_tool

if __name__ == "__main__":
    # `--only ""` chooses all operators, since every name contains the empty string. With --only, the program writes no file of results.
    torch_tool("bench/torch_backend/operators.py", "--only", "", timeout=7000)
