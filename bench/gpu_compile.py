#!/usr/bin/env python3
"""How many memory-bound GPU kernels per second this machine compiles and judges, with one kernel in a translation unit
and with several.

    bench/gpu_compile.py [--targets cuda:sm_90a,hip:gfx90a] [--jobs 2] [--kernels 96] [--json FILE]

No GPU is needed: NVRTC and clang compile the code. A target whose compiler is missing is reported and left out.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", ROOT / "build" / "release" / "bin"))
NOT_HERE = 77


def measure(target, options, unit):
    command = [BIN / "gpu_compile", BIN / "warploom-runner", target, str(options.jobs), str(options.kernels), str(unit)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == NOT_HERE:
        print(done.stderr.strip())
        return None
    if done.returncode != 0:
        sys.exit(f"{target}: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="cuda:sm_80,cuda:sm_90a,hip:gfx90a")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kernels", type=int, default=96)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    for target in options.targets.split(","):
        for unit in (1, 8) if target.startswith("cuda:") else (1,):
            row = measure(target, options, unit)
            if row is None:
                break
            rows.append(row)
            print(f"{target}: {row['kernels_per_s']:.1f} kernels/s, {unit} to a unit, {row['kernels']} kernels by "
                  f"{row['jobs']} processes of {row['compiler']}; {row['rejected']} judged not worth running")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
