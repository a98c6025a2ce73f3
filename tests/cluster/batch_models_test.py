#!/usr/bin/env python3
"""`warploom batch` over all shared models: all processes are killed five times with SIGKILL, and the same command is run again each time.
Nothing is measured twice, and the bundles equal those of an undisturbed run. WARPLOOM_TEST_MODELS=FOLDER names other models."""

import os
import pathlib

from harness import SOURCE, Scratch, expect, skip, trials_in
from killed_batch import killed_as_calm

FOLDER = pathlib.Path(os.environ.get("WARPLOOM_TEST_MODELS", SOURCE.parent / "shared/data/models"))
KILLS = 5


def main():
    models = sorted(FOLDER.glob("*.onnx"))
    if not models:
        skip(f"no models in {FOLDER}")
    batch = 'out = "bundles"\ntrials = 4\nat_once = 1\n' + "".join(f'[[model]]\nfile = "{model.name}"\n' for model in models)
    with Scratch() as scratch:
        calm, shaken = killed_as_calm(scratch, batch, {model.name: model.read_bytes() for model in models}, KILLS, 1200)
        for fleet in (calm, shaken):
            expect(f"{len(models)} of {len(models)} bundles are in {fleet.folder}/bundles" in fleet.said, fleet.said)
        shaken.kill()
        print(f"{len(models)} models, {KILLS} kills of everything, {trials_in(shaken.store)} trials as without them")


if __name__ == "__main__":
    main()
