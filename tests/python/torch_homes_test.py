#!/usr/bin/env python3
"""What torch.compile caches and starts: wrong options raise an error; damaged and unusable caches heal; what was left to eager mode because
of a passing fault is tried again; started programs end with their process; and eight processes at once all get kernels. Needs PyTorch, like
torch_test.py."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from harness import BIN, SCALE, SOURCE, Scratch, expect, torch_python, until


# --- Functions that run in child processes.


def model(torch, width=8):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, 12), torch.nn.GELU(), torch.nn.LayerNorm(12)).eval()


def check(width="8", trials="1", wanted="1"):
    """Compiles a model. Its results are eager's, and `wanted` of its parts are kernels."""
    import torch
    import warploom.torch

    layers, x = model(torch, int(width)), torch.randn(4, int(width))
    compiled = torch.compile(layers, backend="warploom", options={"tune": "first", "trials": int(trials)})
    with torch.no_grad():
        print("begun", flush=True)
        expect(torch.allclose(compiled(x), layers(x), atol=1e-5), "wrong results")
    taken = sum(entry["kernels"] for entry in warploom.torch.report())
    expect(taken == int(wanted), f"{warploom.torch.report()}")


def turns():
    """A process that waits for another one continues when the other has made a bundle, not because a damaged bundle is still there."""
    import fcntl

    from warploom.torch import _cache as cache

    home = pathlib.Path(os.environ["XDG_CACHE_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    bundle, looks = home / "bundle", []
    bundle.mkdir()

    def look(seconds):
        looks.append(seconds)
        if len(looks) == 3:
            bundle.rename(home / "damaged")
            bundle.mkdir()

    cache.time = type("Clock", (), {"monotonic": time.monotonic, "sleep": look})
    with open(home / "lock", "a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with cache._turn(home, bundle) as mine:
            expect(not mine and len(looks) == 3, f"{mine}, after {len(looks)} looks")
    with cache._turn(home, bundle) as mine:
        expect(mine, "nobody else has the turn")


def options():
    import torch

    layers, x, shown = model(torch), torch.randn(4, 8), []

    def called(**given):
        torch._dynamo.reset()
        with torch.no_grad():
            return torch.compile(layers, backend="warploom", **given)(x)

    for given, said in [
        ({"options": {"trails": 8}}, 'no option "trails"; did you mean "trials"?'),
        ({"options": {"out": "folder"}}, "says --out itself"),
        ({"options": {"progress": 3}}, '"progress" is True, False or a function'),
        ({"options": {"tune": "tomorrow"}}, "'later' or 'first'"),
        ({"options": {"trials": "eight"}}, "eight"),
        ({"options": {"trials": 0}}, "--trials"),
        ({"options": {"target": "banana"}}, "banana"),
        ({"mode": "max-autotune"}, "has no mode"),
    ]:
        try:
            called(**given)
        except Exception as error:  # noqa: BLE001: Dynamo wraps the exception in one of its own
            expect(said in str(error), f"{given}: {error}")
        else:
            expect(False, f"{given} is not raised")
    for trials, progress in (1, True), (2, shown.append):
        wanted = layers(x)
        expect(torch.allclose(called(options={"tune": "first", "trials": trials, "progress": progress}), wanted, atol=1e-5), "wrong results")
    expect(shown and "phase" in shown[0], f"{shown}")


def keys():
    """A bundle is for one CPU, which is part of its key."""
    from warploom import _core
    from warploom.torch import _cache

    expect(len(_core.cpu()) > 10, _core.cpu())
    _cache._made = lambda folder, *_: (folder / "bundle").mkdir(parents=True)
    first = _cache.cached("text", [], {}, 1, lambda folder: folder)
    expect(_cache.cached("text", [], {"progress": True}, 1, lambda folder: folder) == first, "an option that decides nothing is in the key")
    _core.cpu = lambda: "another CPU"
    expect(_cache.cached("text", [], {}, 1, lambda folder: folder) != first, "two CPUs share bundles")


def passing(flag):
    """A fault that passes while the process lives: the program is unavailable until a file is removed."""
    import torch
    import warploom.torch

    layers, x = model(torch), torch.randn(4, 8)
    compiled = torch.compile(layers, backend="warploom", options={"tune": "first", "trials": 1})
    with torch.no_grad():
        wanted = layers(x)
        expect(torch.allclose(compiled(x), wanted, atol=1e-5), "wrong results of eager")
        expect(warploom.torch.report()[0]["kernels"] == 0 and warploom.torch.report()[0]["eager"], f"{warploom.torch.report()}")
        os.unlink(flag)

        def again():
            expect(torch.allclose(compiled(x), wanted, atol=1e-5), "wrong results")
            return warploom.torch.report()[0]["kernels"] == 1

        until(again, 60, "kernels once the fault had passed")
    expect(not warploom.torch.report()[0]["eager"], f"{warploom.torch.report()}")


# --- Functions of the parent process.


def start(scratch, *words, log="child", **environment):
    """Starts this file as a child process that runs the function named by the first word, with the other words as arguments."""
    given = scratch.environment | {"WARPLOOM_BIN_DIR": str(BIN), "PYTHONPATH": f"{BIN.parent / 'python'}:{SOURCE}/tests/e2e"} | environment
    out = open(scratch.root / f"{log}.log", "wb")
    return subprocess.Popen([torch_python(), __file__, "--child", *map(str, words)], env=given, stdout=out, stderr=subprocess.STDOUT)


def done(scratch, *words, log="child", **environment):
    """Runs such a child to its end, and returns its output."""
    return ended(scratch, start(scratch, *words, log=log, **environment), log)


def ended(scratch, child, log="child"):
    code, said = child.wait(timeout=600), (scratch.root / f"{log}.log").read_text()
    expect(code == 0, f"{log} ended with {code}: {said[-3000:]}")
    return said


def processes():
    """Returns the living processes: id -> (parent, start time)."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                found[int(stat.parent.name)] = int(fields[1]), fields[19]
    return found


def below(pid):
    """Returns a process and all its descendants, as pairs of an id and a start time."""
    now, found = processes(), {pid}
    while more := {child for child, (parent, _) in now.items() if parent in found} - found:
        found |= more
    return {(each, now[each][1]) for each in found if each in now}


def gone(some):
    return not {(pid, begun) for pid, (_, begun) in processes().items()} & some


def check_ends(scratch):
    """However a process that tunes ends, the program that it started and the program's children end as well, and the next process gets
    kernels."""
    for how in signal.SIGKILL, signal.SIGTERM, signal.SIGINT:
        child = start(scratch, "check", 64, 100_000, log=how.name)
        until(lambda: len(below(child.pid)) > 3, 120, "the program and its runner")
        started = below(child.pid)
        begun = time.monotonic()
        child.send_signal(how)
        child.wait(timeout=60)
        took = time.monotonic() - begun
        until(lambda: gone(started), 20, f"the end of all below a process that got {how.name}")
        print(f"{how.name}: it ended after {took:.2f} s, all below it after {time.monotonic() - begun:.2f} s")
        expect(not list((scratch.root / "cache/warploom/torch").glob("*/bundle*")), f"{how.name}: a search that was ended left a bundle")
    done(scratch, "check", 64)


def check_moments(scratch):
    """A process that is ended at a random moment of its first call leaves no process, no bundle and no file in TMPDIR."""
    temporary = scratch.root / "tmp"
    temporary.mkdir()
    draws = random.Random(int(os.environ.get("WARPLOOM_TEST_SEED", "7")))
    slowest = 0
    for moment in range(max(2, round(5 * SCALE))):
        how, when = draws.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]), draws.uniform(0, 4)
        what = f"{how.name}, {when:.3f} s after the first call began"
        child = start(scratch, "check", 64, 100_000, log=f"moment{moment}", TMPDIR=str(temporary))
        said = scratch.root / f"moment{moment}.log"
        until(lambda: "begun" in said.read_text() or child.poll() is not None, 120, "the first call")
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=when)
        started = below(child.pid)
        begun = time.monotonic()
        child.send_signal(how)
        child.wait(timeout=60)
        until(lambda: gone(started), 20, f"{what}: the end of all below it")
        slowest = max(slowest, time.monotonic() - begun)
        expect(not list((scratch.root / "cache/warploom/torch").glob("*/bundle*")), f"{what}: it left a bundle")
        left = [path for path in temporary.iterdir() if not path.name.startswith("torchinductor")]
        expect(not left or how == signal.SIGKILL, f"{what}: left in TMPDIR: {left}")
    print(f"from a signal to the end of all that a first call has started: at most {slowest:.2f} s")


def check_damage(scratch):
    done(scratch, "check")
    (bundle,) = (scratch.root / "cache/warploom/torch").glob("*/bundle")
    files = sorted(path for path in bundle.rglob("*") if path.is_file())
    objects = [path for path in files if path.suffix == ".so"]
    for damage in "flipped", "empty", "lost", "manifest", "file":
        path = objects[0] if damage != "manifest" else next(path for path in files if path.suffix == ".json")
        path = next(bundle.rglob(path.name))
        if damage == "file":
            subprocess.run(["rm", "-r", bundle], check=True)
            bundle.write_text("no folder")
        elif damage == "lost":
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data if damage == "flipped" else b"")
        said = done(scratch, "check", log=damage)
        expect(said.count("is made again") == 1, f"{damage}: {said}")
        expect("is made again" not in done(scratch, "check", log=damage), f"{damage}: it is not mended")


def check_unusable(scratch):
    """A cache that cannot be written, and a cache from which nothing can be loaded."""
    blocked = scratch.root / "no-folder"
    blocked.write_text("")
    said = done(scratch, "check", XDG_CACHE_HOME=str(blocked))
    expect(said.count("this process has one of its own") == 1, said)
    temporary = scratch.root / "tmp"
    temporary.mkdir()
    done(scratch, "check", XDG_CACHE_HOME="/proc/none", TMPDIR=str(temporary))
    left = [path for path in temporary.iterdir() if not path.name.startswith("torchinductor")]
    expect(not left, f"left behind: {left}")


def check_passing(scratch):
    fake, flag = scratch.root / "bin", scratch.root / "away"
    fake.mkdir()
    flag.write_text("")
    program = fake / "warploom"
    program.write_text(f'#!/bin/sh\nif [ -e {flag} ]; then echo "warploom: error: nobody is there" >&2; exit 4; fi\nexec {BIN}/warploom "$@"\n')
    program.chmod(0o755)
    done(scratch, "passing", flag, WARPLOOM_BIN_DIR=str(fake))


def check_ranks(scratch):
    """Eight processes of one job, first with an empty cache, then with a full one. Two of them are killed meanwhile."""
    for turn in "cold", "warm":
        ranks = [start(scratch, "check", 32 if rank % 2 else 16, log=f"{turn}{rank}", OMP_NUM_THREADS="1") for rank in range(8)]
        for rank in (0, 3):
            until(lambda: "begun" in (scratch.root / f"{turn}{rank}.log").read_text() or ranks[rank].poll() is not None, 300, "a rank")
            ranks[rank].kill()
            ranks[rank].wait()
        for rank in set(range(8)) - {0, 3}:
            ended(scratch, ranks[rank], f"{turn}{rank}")


def main():
    if "--child" in sys.argv:
        return globals()[sys.argv[2]](*sys.argv[3:])
    torch_python()
    for part in [lambda s: done(s, "options"), lambda s: done(s, "keys"), lambda s: done(s, "turns"), check_damage, check_unusable, check_passing, check_ends, check_moments, check_ranks]:
        begun = time.monotonic()
        with Scratch() as scratch:
            part(scratch)
        print(f"{getattr(part, '__name__', 'part')}: {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
