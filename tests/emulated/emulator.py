"""Starts programs with an emulator of AMD's instructions as their HIP device. The emulator is a tool beside this project
(../shared/tools/amd-emulator, whose README says what it models). The first test that needs it prepares it in build/emulator, which installs
a compiler and downloads a Python package."""

import contextlib
import fcntl
import os
import pathlib
import subprocess

from harness import SOURCE, kill_group, skip

TOOLS = SOURCE.parent / "shared/tools/amd-emulator"
FOLDER = SOURCE / "build/emulator"
SETUP_SECONDS = 600


@contextlib.contextmanager
def alone():
    """Holds a lock in FOLDER: tests run at the same time, and only one of them prepares the emulator."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_ready():
    """Prepares the emulator in FOLDER. Skips the test if the emulator is missing or cannot be prepared within SETUP_SECONDS."""
    if not (TOOLS / "setup.sh").exists():
        skip("no AMD emulator beside this project (../shared/tools/amd-emulator)")
    with alone():
        if (FOLDER / ".ready").exists():
            return
        try:
            done = subprocess.run([str(TOOLS / "setup.sh"), str(FOLDER)], capture_output=True, text=True, timeout=SETUP_SECONDS)
        except subprocess.TimeoutExpired:
            skip(f"the emulator was not ready in {SETUP_SECONDS} s")
        if done.returncode != 0:
            skip(f"the emulator cannot be made ready: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]}")
        (FOLDER / ".ready").touch()


def environment():
    """Returns the environment of programs on the emulator. What the emulator compiles for itself is kept in FOLDER between runs."""
    return dict(os.environ, XDG_CACHE_HOME=str(FOLDER / "cache"), EMU_ORDER=os.environ.get("EMU_ORDER", "forward"))


def command(architecture, *program):
    """Returns the command line that runs a program with the emulator as the device hip:0."""
    return [str(TOOLS / "with_emulator.sh"), str(FOLDER), architecture, *map(str, program)]


@contextlib.contextmanager
def ended(process):
    """Ends a program that was started in a session of its own, and the program's emulator, also after an exception."""
    try:
        yield
    finally:
        kill_group(process)
        process.wait(timeout=30)
