#!/usr/bin/env python3
"""Tuning jobs of two builds of Warploom: searches, trials and seconds from an empty store, and how fast the programs are that they make.

Both builds tune each model, one after the other. Then the two programs run in turns, in processes of their own, both by the second build's
`warploom run`. The last columns are the time of the first build's program over that of the second's: above 1, the second's is faster.

    bench/search/builds.py BEFORE/bin AFTER/bin MODEL.onnx... --trials 4

Run it on an idle machine. The programs are kept in --work, and a model that is there already is only timed again.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import time


def tuned(program, model, folder, options):
    """Tunes a model from an empty store into a bundle, unless the folder has one, and returns the figures of the job."""
    facts = folder / "facts.json"
    if facts.exists():
        return json.loads(facts.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [program, "tune", model, "--store", folder / "store.db", "--out", folder / "bundle", "--json", "-", *options]
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=(folder / "stderr").open("w"))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}; see {folder / 'stderr'}")
    report = json.loads(done.stdout)
    made = {"seconds": time.monotonic() - begin, "trials": report["job"]["trials_run"], "kernels": report["totals"]["kernels"]}
    facts.write_text(json.dumps(made))
    shutil.rmtree(folder / "store.db.objects", ignore_errors=True)
    return made


def samples(program, bundle, calls):
    command = [program, "run", bundle, "--repeat", str(calls), "--json", "-"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["time"]["samples_ns"]


def compared(program, bundles, rounds, seconds):
    """Returns the least sample and the median of each bundle, timed in turns."""
    taken = [[], []]
    calls = [max(3, int(seconds * 1e9 / min(samples(program, bundle, 3)))) for bundle in bundles]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            taken[which] += samples(program, bundles[which], calls[which])
    return [(min(times), statistics.median(times)) for times in taken]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--options", default="", help="more options of `warploom tune`, separated by spaces")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each program")
    parser.add_argument("--seconds", type=float, default=1, help="seconds of a turn")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/bench/builds"))
    options = parser.parse_args()
    asked = ["--trials", str(options.trials), *options.options.split()]
    print("| model | trials | of before | seconds | of before | kernels | time, least samples | before / after, least | median |\n|---|---|---|---|---|---|---|---|---|")
    least_ratios, shares = [], []
    for model in options.models:
        folders = [options.work / f"{model.stem}-{'-'.join(asked).replace('/', '_')}" / side for side in ("before", "after")]
        before, after = [
            tuned(bin_dir / "warploom", model, folder, asked) for bin_dir, folder in zip((options.before, options.after), folders)
        ]
        one, two = compared(options.after / "warploom", [folder / "bundle" for folder in folders], options.rounds, options.seconds)
        least_ratios.append(one[0] / two[0])
        shares.append(after["trials"] / before["trials"])
        print(
            f"| {model.stem} | {before['trials']} → {after['trials']} | {shares[-1]:.2f} | {before['seconds']:.0f} → {after['seconds']:.0f} "
            f"| {after['seconds'] / before['seconds']:.2f} | {before['kernels']} → {after['kernels']} | {one[0] / 1e6:.3f} → {two[0] / 1e6:.3f} ms "
            f"| {least_ratios[-1]:.3f} | {one[1] / two[1]:.3f} |",
            flush=True,
        )
    mean = statistics.geometric_mean
    print(f"\nGeometric means: {mean(shares):.2f} of the trials, time before / after {mean(least_ratios):.3f} by least samples, least {min(least_ratios):.3f}.")


if __name__ == "__main__":
    main()
