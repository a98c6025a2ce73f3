#!/usr/bin/env python3
"""docs/torch-operators.md is what tools/torch_operators.py writes. Needs PyTorch and the package expecttest."""

from harness import torch_tool

if __name__ == "__main__":
    torch_tool("tools/torch_operators.py", "--check", timeout=1500)
