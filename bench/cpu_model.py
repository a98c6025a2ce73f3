#!/usr/bin/env python3
"""How well the calibrated cost of CPU contractions ranks schedules that were never run.

    bench/cpu_model.py                  judge the committed recording again; measures nothing
    bench/cpu_model.py --record         compile and time on this machine, keep the samples in bench/results,
                                        calibrate and judge
    bench/cpu_model.py --record --only square_512 ...    some shapes, besides micro-kernels and calibration shapes

Every schedule is timed in rounds over all schedules of its shape, every other round in reverse order, and the second least
of its samples counts. The model is calibrated with the micro-kernels and seven schedules of each calibration shape (at most
200 points), never with a shape that is ranked. The schedules of most ranked shapes are a uniform draw from all legal ones for
one thread; those of shapes with weights in panels begin with the seeds of the space.
"""

import argparse
import datetime
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", ROOT / "build" / "release" / "bin")) / "cpu_model"
RECORDING = ROOT / "bench" / "results" / "cpu-model-20261122.json.gz"
WORK = ROOT / "build" / "bench" / "cpu_model"


def program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, text=True, capture_output=True).stdout


def record(only, rounds):
    WORK.mkdir(parents=True, exist_ok=True)
    shapes = program("shapes").split()
    if only:
        unknown = set(only) - set(shapes)
        if unknown:
            raise SystemExit(f"cpu_model.py: unknown shapes {', '.join(sorted(unknown))}; known: {', '.join(shapes)}")
        shapes = [s for s in shapes if s in only or s in program("shapes", "calibration").split()]
    micro = [s for s in shapes if s.startswith("micro_")]
    program("compile", WORK, *micro)
    program("time", WORK, 2 * rounds, *micro)
    for shape in shapes:
        if shape in micro:
            continue
        program("compile", WORK, shape)
        program("time", WORK, rounds, shape)
    RECORDING.parent.mkdir(exist_ok=True)
    program("pack", WORK, RECORDING)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if options.record:
        record(options.only, options.rounds)
    table = program("judge", RECORDING)
    if options.record:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M")
        (ROOT / "bench" / "results" / f"cpu-model-{stamp}.md").write_text(table)
    print(table, end="")


if __name__ == "__main__":
    main()
