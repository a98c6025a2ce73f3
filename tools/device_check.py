#!/usr/bin/env python3
"""Checks Warploom's GPU kernels on a machine that has a GPU but no Warploom.

    tools/device_check.py build FOLDER [--target cuda:sm_90a] [--quick] [--candidates N] [--only WORD]...
          [--plans FILE] [--random FIRST:COUNT]
        on this machine, without a GPU: writes compiled and judged candidates of every workload with the oracle's
        values, the programs and every library they need. At most 64 MiB.
    FOLDER/run.sh [RESULT]
        on the machine with the GPU: needs only the GPU's driver. Checks values, and times kernels beside a copy kernel
        in the same run; also beside the library for products (cuBLASLt, hipBLASLt) if it is installed, and beside
        torch eager, torch.compile(max-autotune), cuDNN and cuBLAS if python3 has torch with a device. Writes RESULT,
        JSON.

Exit code of run.sh: 0 measured, 3 no such device (RESULT says why), 7 failed.
"""

import argparse
import os
import pathlib
import shutil
import stat
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", ROOT / "build" / "release" / "bin"))
MOST_BYTES = 64 << 20
PROGRAMS = ("device_check", "warploom-runner")

# The programs run with the dynamic loader and the C library of the machine that built them, since those of the GPU's
# machine may be older. The GPU's driver is loaded from the GPU machine's own folders.
RUN = """#!/bin/sh
# Checks this machine's GPU; see tools/device_check.py. usage: run.sh [RESULT]
here=$(cd "$(dirname "$0")" && pwd)
result=${1:-$here/results.json}
"$here/start" device_check run "$here/plans" "$here/runner" "$result"
code=$?
if [ $code -eq 0 ]; then
  if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    python3 "$here/torch_peers.py" "$here/plans/index.json" "$result" || echo "torch's figures are missing: it failed" >&2
  else
    echo "no torch with a device here: nothing to compare with but the copy kernel" >&2
  fi
fi
exit $code
"""
START = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
program=$1
shift
exec "$here/lib/LOADER" --library-path "$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:/usr/lib64:/usr/lib/x86_64-linux-gnu:\
/usr/lib/aarch64-linux-gnu:/usr/local/nvidia/lib64:/usr/local/cuda/lib64:/opt/rocm/lib:/usr/lib/wsl/lib" "$here/bin/$program" "$@"
"""
RUNNER = """#!/bin/sh
exec "$(dirname "$0")/start" warploom-runner "$@"
"""


def fail(why):
    print(f"device_check: {why}", file=sys.stderr)
    sys.exit(1)


def write_script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def libraries_of(program):
    """Returns the paths of a program's shared libraries by name, and the path of its dynamic loader."""
    listing = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found, loader = {}, None
    for line in listing.splitlines():
        words = line.split()
        if "=>" in words and words[2].startswith("/"):
            found[words[0]] = words[2]
        elif words and words[0].startswith("/"):
            loader = words[0]
        elif "not" in words:
            fail(f"{program}: {line.strip()}")
    return found, loader


def build(options):
    folder = pathlib.Path(options.folder)
    if folder.exists() and any(folder.iterdir()):
        fail(f"{folder} is not empty")
    for part in ("bin", "lib", "plans"):
        (folder / part).mkdir(parents=True)
    loader = None
    for program in PROGRAMS:
        if not (BIN / program).exists():
            fail(f"{BIN / program} is missing; build it: cmake --build build/release --target {program}")
        subprocess.run(["strip", "-o", folder / "bin" / program, BIN / program], check=True)
        found, loader = libraries_of(BIN / program)
        for name, path in found.items():
            shutil.copy(path, folder / "lib" / name)
    shutil.copy(loader, folder / "lib" / pathlib.Path(loader).name)
    # The copied loader keeps its name, since libraries depend on it by that name.
    write_script(folder / "start", START.replace("LOADER", pathlib.Path(loader).name))
    write_script(folder / "runner", RUNNER)
    write_script(folder / "run.sh", RUN)
    shutil.copy(ROOT / "tools" / "torch_peers.py", folder / "torch_peers.py")
    command = [BIN / "device_check", "plan", options.target, BIN / "warploom-runner", folder / "plans"]
    command += ["--quick"] if options.quick else []
    command += ["--candidates", str(2 if options.quick else options.candidates)]
    for word in options.only:
        command += ["--only", word]
    command += ["--plans", options.plans] if options.plans else []
    command += ["--random", options.random] if options.random else []
    if subprocess.run(command).returncode != 0:
        fail(f"no plans for {options.target}")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / (1 << 20):.1f} MiB, for {options.target}; copy it to the machine and run {folder.name}/run.sh")
    if size > MOST_BYTES:
        fail(f"{folder} has {size} bytes, more than {MOST_BYTES}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("build", help="make the folder that travels")
    make.add_argument("folder")
    make.add_argument("--target", default="cuda:sm_90a")
    make.add_argument("--quick", action="store_true", help="small shapes, one of each op: to try the check itself")
    make.add_argument("--candidates", type=int, default=12, metavar="N", help="of each workload, at most (default 12)")
    make.add_argument("--only", action="append", default=[], metavar="WORD", help="workloads whose name has this word")
    make.add_argument("--plans", metavar="FILE", help="lines 'WORD PLAN': candidates of the workloads whose name has the word")
    make.add_argument("--random", metavar="FIRST:COUNT", help="check the groups of so many random graphs too, by seed")
    make.set_defaults(run=build)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
