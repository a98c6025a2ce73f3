#!/usr/bin/env python3
"""How fast programs of predicted kernels are (`warploom tune --now` from an empty store) beside those that a search has found. The two programs
of each model run in turns, in processes of their own. A ratio of 0.9 says that the predicted program reaches nine tenths of the searched one's speed.

    bench/search/predicted.py BIN MODEL.onnx... --trials 8

Run it on an idle machine. The programs are kept in --work, and a model that is there already is only timed again."""

import argparse
import pathlib
import statistics

import builds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=6, help="turns of each program")
    parser.add_argument("--seconds", type=float, default=1, help="seconds of a turn")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/bench/predicted"))
    options = parser.parse_args()
    program = options.bin / "warploom"
    print("| model | seconds, predicted | searched | least sample, predicted | searched | speed, least samples | medians |\n|---|---|---|---|---|---|---|")
    speeds = []
    for model in options.models:
        folder = options.work / f"{model.stem}-{options.trials}"
        asked = {"predicted": ["--now"], "searched": ["--trials", str(options.trials)]}
        made = {name: builds.tuned(program, model, folder / name, words) for name, words in asked.items()}
        now, later = builds.compared(program, [folder / name / "bundle" for name in asked], options.rounds, options.seconds)
        speeds.append(later[0] / now[0])
        print(
            f"| {model.stem} | {made['predicted']['seconds']:.1f} | {made['searched']['seconds']:.0f} | {now[0] / 1e6:.3f} ms | {later[0] / 1e6:.3f} ms "
            f"| {speeds[-1]:.3f} | {later[1] / now[1]:.3f} |",
            flush=True,
        )
    print(f"\nGeometric mean {statistics.geometric_mean(speeds):.3f}, least {min(speeds):.3f}.")


if __name__ == "__main__":
    main()
