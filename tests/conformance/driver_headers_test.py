#!/usr/bin/env python3
"""Compares the names, numbers and arguments of runtime/gpu_tables.h and matmul_tables.h with NVIDIA's and AMD's headers, by static
assertions, for every installed version of the headers. WARPLOOM_HEADERS names further folders of headers, separated by colons. The test is
skipped on a machine without such headers."""

import glob
import os
import pathlib
import re
import subprocess
import sys

from harness import SOURCE, fail, skip

FOLDERS = ["/usr/include", "/usr/local/cuda*/include", "/opt/rocm*/include", str(SOURCE / "build/venv*/lib/python3*/site-packages/nvidia/*/include")]
# File that compares -> the vendor's header, the header that defines the vendor's version, and a pattern that finds the version there.
HEADERS = {
    "cuda_header.cc": ("cuda.h", "cuda.h", r"#define CUDA_VERSION (\d+)"),
    "hip_header.cc": ("hip/hip_runtime_api.h", "hip/hip_version.h", r"#define HIP_VERSION_MAJOR (\d+)"),
    "cublaslt_header.cc": ("cublasLt.h", "cublas_api.h", r"#define CUBLAS_VER_MAJOR (\d+)"),
    "hipblaslt_header.cc": ("hipblaslt/hipblaslt.h", "hipblaslt/hipblaslt-version.h", r"#define hipblasltVersionMajor (\d+)"),
}


def folders():
    """Returns every folder of headers once, also if several links lead to it."""
    named = [folder for folder in os.environ.get("WARPLOOM_HEADERS", "").split(":") if folder]
    found = [folder for pattern in FOLDERS + named for folder in sorted(glob.glob(pattern))]
    return list(dict.fromkeys(os.path.realpath(folder) for folder in found))


def version_in(file, pattern):
    found = re.search(pattern, file.read_text(errors="replace")) if file.exists() else None
    return found[1] if found else "of an unknown version"


def compare(source, folder):
    """Returns the compiler's errors about table rows that differ from the headers, or an empty string."""
    command = ["g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{SOURCE}", str(SOURCE / "tests/conformance" / source)]
    if folder != "/usr/include":
        command.append(f"-isystem{folder}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return "" if done.returncode == 0 else "\n".join(line for line in done.stderr.splitlines() if "error:" in line)


def main():
    compared, wrong = [], []
    for source, (header, says, pattern) in HEADERS.items():
        for folder in folders():
            if not (pathlib.Path(folder) / header).exists():
                continue
            name = f"{header} {version_in(pathlib.Path(folder) / says, pattern)} in {folder}"
            compared.append(name)
            if found := compare(source, folder):
                wrong.append(f"{name}:\n{found}")
    for name in compared:
        print("compared with", name)
    if wrong:
        fail("\n".join(wrong))
    if not compared:
        skip("neither cuda.h nor hip/hip_runtime_api.h is installed here")


if __name__ == "__main__":
    sys.exit(main())
