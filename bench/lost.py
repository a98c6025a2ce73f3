#!/usr/bin/env python3
"""What a search loses by no longer timing a candidate that is clearly slower than the best (kLost in worker/drivers/timing.cpp).

Draws 48 points of each recorded space and their samples in random order, times them as a search does, and takes the eight
that look fastest. Prints how much slower the best of these is than the best of the 48, by all recorded samples, and
the number of runs. `before` are the rules before searches had a runner of their own (docs/design/search.md#runner-of-a-search),
`now` those since. Takes seconds and needs no device.

    bench/lost.py
"""

import gzip
import json
import pathlib
import random

SPACES = pathlib.Path(__file__).parent / "replay" / "spaces"
DRAWS, TRIALS, FINALISTS = 400, 48, 8


def undisturbed(samples):
    return sorted(samples)[min(1, len(samples) - 1)]


def lost_before(samples, best):
    behind = undisturbed(samples) / best
    return len(samples) >= 2 and behind > 2 or len(samples) >= 3 and behind > 1.25


def lost_now(samples, best):
    return any(len(samples) >= n and min(samples) > factor * best for n, factor in ((2, 1.5), (3, 1.25), (5, 1.1)))


# Each rule: its name; a function that tells from a candidate's samples whether the candidate is so slow that timing it can end; the largest
# number of samples of a candidate; and the number of runs of a candidate that give no sample (the check, and the warm-up).
RULES = (("before", lost_before, 5, 2), ("now", lost_now, 3, 1))


def timed(samples, best, lost, enough):
    taken = []
    for sample in samples:
        taken.append(sample)
        if len(taken) >= enough or best and lost(taken, best):
            break
    return taken


def search(points, lost, enough, seed):
    """Returns how much slower the best finalist is than the best point, as a fraction, and the number of samples."""
    draw = random.Random(seed)
    picked = draw.sample(range(len(points)), min(TRIALS, len(points)))
    best, samples, found = 0, 0, []
    for point in picked:
        taken = timed(draw.sample(points[point], len(points[point])), best, lost, enough)
        samples += len(taken)
        found.append((undisturbed(taken), point))
        best = min(time for time, _ in found)
    finalists = min(undisturbed(points[point]) for _, point in sorted(found)[:FINALISTS])
    return finalists / min(undisturbed(points[point]) for point in picked) - 1, samples


def main():
    for path in sorted(SPACES.glob("*.gz")):
        with gzip.open(path) as file:
            results = json.load(file)["results"]
        points = [result["times"]["runtimes"] for result in results if len(result.get("times", {}).get("runtimes") or []) >= 5]
        line = path.name.split(".")[0]
        for name, lost, enough, beside in RULES:
            draws = [search(points, lost, enough, seed) for seed in range(DRAWS)]
            loss, samples = (sum(column) / DRAWS for column in zip(*draws))
            line += f"; {name}: {100 * loss:.2f} % from the best, {samples + beside * TRIALS:.0f} runs"
        print(line)


if __name__ == "__main__":
    main()
