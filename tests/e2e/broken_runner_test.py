#!/usr/bin/env python3
"""If the runner cannot start, `warploom tune` ends with the reason instead of waiting for ever. If another program is missing from the
folder of the programs, `tune` ends at once."""

import shutil

import graphs
from harness import BIN, Scratch, expect


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.SOFTMAX)
        program = scratch.root / "warploom"
        shutil.copy(BIN / "warploom", program)
        tune = [program, "tune", "g.graph", "--trials", 1, "--store", "s.db"]
        said = scratch.run(*tune, expect=4, deadline=60).err
        expect("warploom-runner is missing" in said, said)
        runner = scratch.root / "warploom-runner"
        runner.write_text("#!/bin/sh\nexit 127\n")
        runner.chmod(0o755)
        said = scratch.run(*tune, expect=4, deadline=60).err
        expect("the worker has ended: " in said and "exited with status 127" in said, said)
        # The store is intact: once there is a working runner, the same command continues the search.
        shutil.copy(BIN / "warploom-runner", runner)
        expect("searched" in scratch.run(*tune).out, "it goes on")


if __name__ == "__main__":
    main()
