#!/usr/bin/env python3
"""Covers of models as a table: kernels, bytes and modelled time of one kernel per op, of greedy fusion around
library calls for contractions, of greedy and of planned covers, and the gain of packing independent kernels into
one launch. Nothing is run.

cover.py [--bin DIR] [--target NAME]... [--half] [--library N] [--random OPS] MODEL.onnx...

--half: every f32 as bf16. Contractions are priced as this compiler's own kernels in every cover. "library" is the cover "calls"
with contractions of 16-bit floats N times as fast (--library), as a library with faster kernels would make it.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COVERS = ("one_per_op", "calls", "greedy", "planned")
MEANS = {"calls": "calls", "library": "library", "greedy": "greedy", "packed": "unpacked"}  # key in the output of `cover` -> name in the table


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def cells_of(row):
    covers = [row[name] for name in COVERS]
    micros = [cover["micros"] for cover in covers]
    yield from (row["file"].removesuffix(".onnx"), row["ops"], row["columns"])
    yield from (f"{row['pool_s']:.2f}", f"{row['solve_s']:.2f}", f"{max(0, row['gap']):.1%}")
    yield " / ".join(str(cover["kernels"]) for cover in covers)
    yield " / ".join(f"{cover['bytes'] / 1e6:.1f}" for cover in covers)
    yield " / ".join(f"{us:.0f}" for us in micros)
    yield from (f"{us / micros[3]:.3f}" for us in (micros[1], row["library"]["micros"], micros[2]))
    packed = row["packed"]
    yield f"{packed['kernels']}, for {packed['apart'] - covers[3]['kernels'] + packed['kernels']}"
    yield f"{packed['micros'] / micros[3]:.3f}"


def table(target, rows):
    heads = ["graph", "ops", "columns", "pool s", "solve s", "gap", "kernels", "MB", "modelled us"]
    heads += ["calls / planned", "library / planned", "greedy / planned", "packed kernels", "unpacked / planned"]
    print(f"\n{target}: one kernel per op / calls / greedy / planned\n")
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, cells_of(row))) + " |")
    means = [
        f"{said} / planned {geometric_mean([row[name]['micros'] / row['planned']['micros'] for row in rows]):.3f}"
        for name, said in MEANS.items()
    ]
    print(f"\ngeometric means: {', '.join(means)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--library", type=float, default=1)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    for target in arguments.target or ["cpu:avx512", "cuda:sm_90a"]:
        command = [arguments.bin / "cover_bench", "--target", target, "--library", str(arguments.library), *arguments.models]
        if arguments.half:
            command.append("--half")
        if arguments.random:
            command += ["--random", str(arguments.random)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(done.returncode)  # the program `cover` has already printed why it failed
        lines = done.stdout.splitlines()
        table(target + (", every f32 as bf16" if arguments.half else ""), list(map(json.loads, lines)))


if __name__ == "__main__":
    main()
