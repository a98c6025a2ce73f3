#!/usr/bin/env python3
"""Covers of models as a table: kernels, bytes and modelled time of one kernel per op, greedy and planned; nothing is run.

cover.py [--bin DIR] [--target NAME]... [--random OPS] MODEL.onnx...
"""

import argparse
import json
import math
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    for target in arguments.target or ["cpu:avx512", "cuda:sm_90a"]:
        command = [arguments.bin / "cover_bench", "--target", target, *arguments.models]
        if arguments.random:
            command += ["--random", str(arguments.random)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        print(f"\n{target}: one kernel per op / greedy / planned\n")
        print("| graph | ops | columns | pool s | solve s | gap | kernels | MB | modelled us | greedy / planned |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        gains = []
        for row in map(json.loads, lines):
            covers = [row[name] for name in ("one_per_op", "greedy", "planned")]
            gains.append(covers[1]["micros"] / covers[2]["micros"])
            cells = [row["file"].removesuffix(".onnx"), row["ops"], row["columns"], f"{row['pool_s']:.2f}"]
            cells += [f"{row['solve_s']:.2f}", f"{max(0, row['gap']):.1%}"]
            cells.append(" / ".join(str(cover["kernels"]) for cover in covers))
            cells.append(" / ".join(f"{cover['bytes'] / 1e6:.1f}" for cover in covers))
            cells.append(" / ".join(f"{cover['micros']:.0f}" for cover in covers))
            cells.append(f"{gains[-1]:.3f}")
            print("| " + " | ".join(map(str, cells)) + " |")
        print(f"\ngeometric mean greedy / planned: {math.exp(sum(map(math.log, gains)) / len(gains)):.3f}")


if __name__ == "__main__":
    main()
