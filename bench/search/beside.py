#!/usr/bin/env python3
"""What a program notices of a search in the background: latencies of a model that is called at a fixed rate, alone and while `warploom --idle tune`
searches another model, in turns. The latency of a call counts from the time when it was due.

    build/venv/bin/python bench/search/beside.py BIN BUNDLE MODEL.onnx --rate 20 --seconds 30 --turns 3

BUNDLE is the program that is called (the folder that `warploom tune` wrote), MODEL is searched, anew in every turn. Run it on an idle machine."""

import argparse
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np


def latencies(call, rate, seconds):
    """Returns the sorted latencies in ms of calls at a fixed rate."""
    begin, taken = time.perf_counter() + 0.1, []
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        time.sleep(max(0, due - time.perf_counter()))
        call()
        taken.append(1e3 * (time.perf_counter() - due))
    return sorted(taken)


def at(taken, share):
    return taken[min(len(taken) - 1, int(share * len(taken)))]


def searching(program, model, words):
    """Starts a search, and returns its process and the function that ends it and returns the number of its trials."""
    folder = tempfile.TemporaryDirectory()
    log = pathlib.Path(folder.name) / "log"
    command = [program, *words, "tune", model, "--store", f"{folder.name}/store.db", "--out", f"{folder.name}/bundle", "--trials", "64"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log.open("w"))

    def end():
        process.send_signal(signal.SIGINT)
        process.wait()
        lines = [line for line in log.read_text().splitlines() if " trials, " in line]
        folder.cleanup()
        return lines[-1] if lines else "no trials"

    return end


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--words", default="--idle", help="words after `warploom`, separated by spaces")
    parser.add_argument("--rate", type=float, default=20, help="calls per second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    sys.path.insert(0, str(options.bin.parent / "python"))
    import warploom

    model = warploom.load(options.bundle)
    model.generate_weights()
    random = np.random.default_rng(1)
    given = [random.standard_normal(each.shape).astype("float32") for each in model.inputs()]
    taken = {"alone": [], "beside a search": []}
    for _ in range(options.turns):
        taken["alone"].append(latencies(lambda: model(*given), options.rate, options.seconds))
        end = searching(options.bin / "warploom", options.model, options.words.split())
        time.sleep(3)  # the search has begun to compile and measure
        taken["beside a search"].append(latencies(lambda: model(*given), options.rate, options.seconds))
        print(end())
    print("\n| | median, ms | 99th percentile, ms | most, ms |\n|---|---|---|---|")
    for name, turns in taken.items():
        figures = [statistics.median(at(turn, share) for turn in turns) for share in (0.5, 0.99, 1)]
        print(f"| {name} | {' | '.join(f'{figure:.3f}' for figure in figures)} |")
    ratios = [[at(b, share) / at(a, share) for a, b in zip(*taken.values(), strict=True)] for share in (0.5, 0.99)]
    print(f"\nBeside a search, medians over the turns: {statistics.median(ratios[0]):.3f} of the median, {statistics.median(ratios[1]):.3f} of the 99th percentile.")


if __name__ == "__main__":
    main()
