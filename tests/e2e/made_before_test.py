#!/usr/bin/env python3
"""A bundle that an older release made (tests/data/made_before/bundle_format3) runs, and its results are correct."""

import pathlib
import shutil

from harness import Scratch, expect

BUNDLE = pathlib.Path(__file__).resolve().parents[1] / "data" / "made_before" / "bundle_format3"


def main():
    with Scratch() as scratch:
        bundle = scratch.path("bundle")
        shutil.copytree(BUNDLE, bundle)
        result = scratch.run("warploom", "run", bundle, "--check", "--json", "-").json()
        expect(result["correct"], result)
        print("a bundle of format 3 ok", flush=True)


if __name__ == "__main__":
    main()
