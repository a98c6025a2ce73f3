"""Records the schedule spaces of bench/replay/kernels.json on this machine into
bench/replay/spaces/NAME.T4.json.gz.

Continues where an earlier run was stopped. Objects and raw samples of unfinished spaces are in build/bench/record.
"""

import argparse
import gzip
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNELS = ROOT / "bench" / "replay" / "kernels.json"
BIN = ROOT / "build" / "release" / "bin"
WORK = ROOT / "build" / "bench" / "record"
TOGETHER = 48  # points per line of samples; must equal kTogether of record_space.cpp


def record_space(*words):
    return subprocess.run([BIN / "record_space", *map(str, words)], check=True, capture_output=True, text=True).stdout


def passes(folder):
    samples = folder / "samples"
    if not samples.exists():
        return 0.0
    points = json.loads((folder / "index.json").read_text())["points"]
    groups = -(-sum(point["outcome"] == 0 for point in points) // TOGETHER)
    return sum(1 for _ in samples.open()) / groups


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    names = [row["name"] for row in json.loads(KERNELS.read_text())]
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="KERNEL")
    parser.add_argument("--passes", type=float, default=16, help="over every space; three samples a point each")
    parser.add_argument("--seconds", type=float, default=20, help="of one kernel at a time")
    options = parser.parse_args()
    for name in options.only:
        while ": 0 of" not in (said := record_space("compile", KERNELS, name, WORK / name, options.seconds)):
            print(said, end="", flush=True)
    while least := [n for n in options.only if passes(WORK / n) < options.passes]:
        name = min(least, key=lambda n: passes(WORK / n))
        print(record_space("time", WORK / name, BIN / "warploom-runner", options.seconds), end="", flush=True)
    for name in options.only:
        plain = WORK / f"{name}.T4.json"
        record_space("write", WORK / name, plain)
        out = ROOT / "bench" / "replay" / "spaces" / f"{name}.T4.json.gz"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(gzip.compress(plain.read_bytes(), 9, mtime=0))
        print(out.relative_to(ROOT))


if __name__ == "__main__":
    main()
