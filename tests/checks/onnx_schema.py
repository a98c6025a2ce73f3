#!/usr/bin/env python3
"""Fails when compiler/import/onnx_schema.inc differs from what tools/onnx_schema.py writes from the pinned onnx package."""

import pathlib
import subprocess
import sys
import tempfile

import tree

TABLES = "compiler/import/onnx_schema.inc"
SKIPPED = 77


def main():
    try:
        import onnx
    except ImportError:
        print("skipped: no package onnx; `tools/setup.sh python` makes the environment")
        return SKIPPED
    pinned = (tree.ROOT / "tools/requirements.txt").read_text()
    if f"onnx=={onnx.__version__}\n" not in pinned:
        print(f"skipped: onnx {onnx.__version__} is installed, which is not the version of tools/requirements.txt")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder) / "tables"
        subprocess.run([sys.executable, tree.ROOT / "tools/onnx_schema.py", written], check=True)
        current = written.read_bytes() == (tree.ROOT / TABLES).read_bytes()
    problems = [] if current else [f"{TABLES}: not what tools/onnx_schema.py writes for onnx {onnx.__version__}: run it"]
    return tree.report("onnx schema", problems, 1)


if __name__ == "__main__":
    sys.exit(main())
