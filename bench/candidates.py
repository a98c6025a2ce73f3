#!/usr/bin/env python3
"""Seconds that a search of N candidates of one group takes: enumerated, compiled, checked and timed on this machine.

"The search" is the time from the last default kernel (one per op; these are measured first) to the last candidate.
"The whole" includes planning, reference values, default kernels and the promotion, in which the best are
compiled and measured again side by side.

    bench/candidates.py                        softmax, residual + layer norm, bias + GELU, SGEMM 1024
    bench/candidates.py FILE.onnx --trials 48  another graph; all its groups are searched
"""

import argparse
import os
import pathlib
import subprocess
import tempfile
import time

import workloads

BIN = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", workloads.ROOT / "build" / "release" / "bin"))
NAMES = ("softmax", "layer_norm", "bias_gelu", "sgemm")


def search(model, trials, folder):
    """Returns (seconds of the search, seconds in all, last line of the progress display)."""
    store = pathlib.Path(folder) / "store.db"
    command = [BIN / "warploom", "tune", model, "--store", store, "--retune", "--trials", str(trials), "--strategy", "random"]
    begin, phases, last = time.monotonic(), {}, ""
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in child.stderr:
        last = line.strip() or last
        phases.setdefault(line.split(" ", 1)[0], time.monotonic())
    if child.wait() != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed: {last}")
    return phases["[final]"] - phases["[search]"], time.monotonic() - begin, last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="FILE.onnx")
    parser.add_argument("--trials", type=int, default=48)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = [(pathlib.Path(m).name, m) for m in options.models]
        for workload in workloads.WORKLOADS if not models else ():
            if workload.name in NAMES:
                path = pathlib.Path(folder) / f"{workload.name}.onnx"
                path.write_bytes(workload.model().SerializeToString())
                models.append((workload.title, path))
        for title, path in models:
            searched, total, last = search(path, options.trials, folder)
            print(f"{title}: {options.trials} candidates in {searched:.1f} s, the whole {total:.1f} s; {last}")


if __name__ == "__main__":
    main()
