"""Judges every search strategy on recorded spaces, without a device (bench/replay/replay.cpp): the spaces of
bench/replay/spaces and the tables of ../shared/data/replay. Constants of strategies were chosen on the first half
of each; the second half shows how well they generalise. A second run simulates a store with earlier searches: its
first trials are the winners of the other tables (of similar groups, or of the same kernel on other devices). Writes
bench/results/replay-DATE.json.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
OWN = ROOT / "bench" / "replay" / "spaces"
SHARED = ROOT.parent / "shared" / "data" / "replay"
WORK = ROOT / "build" / "bench"
FLEET = 2  # number of known winners among the first trials of a search, as many as in the service


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--strategies", default="", help="names, separated by commas; default: all")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    result = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
    WORK.mkdir(parents=True, exist_ok=True)
    for title, folder in (("own", OWN), ("shared", SHARED)):
        tables = sorted(folder.glob("*.T4.json.gz"))
        if not tables:
            print(f"skipped: no tables in {folder}")
            continue
        for fleet in (0, FLEET):
            name = f"{title}_fleet" if fleet else title
            print(f"== {name}", flush=True)
            part = WORK / f"replay-{name}.json"
            words = ["--seeds", options.seeds, "--trials", options.trials, "--fleet", fleet, "--out", part]
            if options.strategies or fleet:
                words += ["--strategies", options.strategies or "random,portfolio"]
            done = subprocess.run([ROOT / "build" / "release" / "bin" / "replay", *map(str, words), *tables])
            if done.returncode != 0:
                sys.exit(done.returncode)  # the program `replay` has already printed why it failed
            result[name] = json.loads(part.read_text())
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"replay-{result['date'][:10].replace('-', '')}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nWritten to {path}")


if __name__ == "__main__":
    main()
