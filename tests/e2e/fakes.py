"""Functions that tests of GPUs with fake drivers (tests/fake_gpu) share."""

import pathlib

from harness import BIN

FAKE = BIN.parent / "fake_gpu"  # folder of the fake drivers, for LD_LIBRARY_PATH


def without_clang(scratch):
    """Removes clang from PATH and returns the old PATH. AMD's code then comes from the fake hipRTC, whose code is the only one that the
    fake driver runs."""
    tools = scratch.root / "tools"
    tools.mkdir()
    path = scratch.environment["PATH"]
    for clang in (clang for folder in path.split(":") for clang in pathlib.Path(folder).glob("clang++*")):
        (tools / clang.name).write_text("#!/bin/sh\nexit 1\n")
        (tools / clang.name).chmod(0o755)
    scratch.environment["PATH"] = f"{tools}:{path}"
    return path
