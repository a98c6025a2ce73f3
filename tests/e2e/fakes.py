"""Functions that tests of GPUs with fake drivers (tests/fake_gpu) share."""

import pathlib

from harness import BIN

FAKE = BIN.parent / "fake_gpu"  # a folder for LD_LIBRARY_PATH


def without_clang(scratch):
    """Hides clang, so that AMD's code comes from the fake hipRTC, the only code that the fake driver runs. Returns the old PATH."""
    tools = scratch.root / "tools"
    tools.mkdir()
    path = scratch.environment["PATH"]
    for clang in (clang for folder in path.split(":") for clang in pathlib.Path(folder).glob("clang++*")):
        (tools / clang.name).write_text("#!/bin/sh\nexit 1\n")
        (tools / clang.name).chmod(0o755)
    scratch.environment["PATH"] = f"{tools}:{path}"
    return path
