#!/usr/bin/env python3
"""torch.compile(.., backend="warploom") answers with kernels that nobody has searched, searches in the background, and takes over what is
faster where it runs: results stay eager's under load of several threads, slower kernels go back, graphs that lose to eager are left to
it, and the search gives way to other processes and ends with its own."""

import functools
import os
import pathlib
import subprocess
import sys
import threading
import time
import types

import graphs
from harness import BIN, SCALE, Scratch, expect, python_package, torch_python, until


def layers(torch, width=64):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, width)).eval()


def called_until(torch, compiled, x, wanted, done, seconds=240):
    """Calls a compiled function until `done()` is true, with right results and short pauses, in which the search goes on."""
    end = time.monotonic() + seconds
    while not done():
        expect(time.monotonic() < end, "it is not done in time")
        expect(torch.allclose(compiled(x), wanted, atol=1e-4), "wrong results")
        time.sleep(0.002)


# --- Functions that run in child processes.


def takes_over():
    """The first answer needs no search. Later the report says what was found, and a second process has it at once."""
    import torch
    import warploom.torch

    module, x = layers(torch), torch.randn(32, 64)
    compiled = torch.compile(module, backend="warploom", options={"trials": 6})
    with torch.inference_mode():
        wanted = module(x)
        expect(torch.allclose(compiled(x), wanted, atol=1e-4), "wrong results")
        entry = warploom.torch.report()[0]
        expect(entry["kernels"] == 1 and entry["later"] == 1 and not entry["replaced"], entry)
        called_until(torch, compiled, x, wanted, lambda: warploom.torch.report()[0]["later"] == 0)
        entry = warploom.torch.report()[0]
        expect(len(entry["replaced"]) == 1 and entry["replaced"][0]["before_ms"] > 0, entry)
        expect(warploom.torch.wait(60), "something is still searched")
        tried = lambda: warploom.torch.report()[0]["against_eager"]  # noqa: E731
        called_until(torch, compiled, x, wanted, lambda: tried() is not None)
        expect(tried()["before_ms"] > 0 and tried()["after_ms"] > 0, tried())
    print(warploom.torch.report())


def answers():
    """The first answer does not wait for the search of another process."""
    import torch

    module, x = layers(torch, 72), torch.randn(32, 72)
    compiled = torch.compile(module, backend="warploom", options={"trials": 6})
    with torch.inference_mode():
        expect(torch.allclose(compiled(x), module(x), atol=1e-4), "wrong results")


def knows():
    import torch
    import warploom.torch

    module, x = layers(torch), torch.randn(32, 64)
    compiled = torch.compile(module, backend="warploom", options={"trials": 6})
    with torch.inference_mode():
        expect(torch.allclose(compiled(x), module(x), atol=1e-4), "wrong results")
    expect(warploom.torch.report()[0]["later"] == 0, warploom.torch.report())


class Clock:
    """A clock that stands still unless somebody says that time has passed."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Way:
    """A way to run a part: adds a number, takes some milliseconds of a clock, and counts its calls."""

    def __init__(self, adds, clock=None, ms=0, fails=False):
        self.adds, self.clock, self.ms, self.fails, self.calls = adds, clock, ms, fails, 0

    def __call__(self, x):
        self.calls += 1
        if self.fails:
            raise RuntimeError("no memory")
        if self.clock is not None:
            self.clock.now += 1e-3 * self.ms
        return x + self.adds


def trials():
    """New ways stay only if the whole graph is faster with them: one that is fast alone, and makes its neighbour slow, goes back."""
    import torch
    from warploom.torch._trials import Part, Tried

    clock, evicted = Clock(), []

    class Graph(torch.nn.Module):
        def __init__(self, way):
            super().__init__()
            self.fused_0 = Part(way, Way(1, clock, 4))

        def forward(self, x):
            x = self.fused_0(x)
            clock.now += 8e-3 if evicted else 2e-3  # the neighbour
            evicted.clear()
            return x

    class Evicts(Way):
        def __call__(self, x):
            evicted.append(True)
            return super().__call__(x)

    told, old = [], Way(1, clock, 4)
    tried = Tried(Graph(old), clock)
    part = tried.parts()[0]
    x = torch.zeros(3)

    def calls():
        for _ in range(200):
            expect(tried(x).sum() == 3, "wrong results")

    for way, stays in ((Evicts(1, clock, 1), False), (Way(1, clock, 6), False), (Way(1, fails=True), None), (Way(1, clock, 1), True)):
        told.clear()
        tried.replace(part, way, lambda *seen: told.append(seen))
        calls()
        expect([seen[2] for seen in told] == [bool(stays)] and (told[0][0] is None) == (stays is None), f"{type(way).__name__}: {told}")
        expect((part.made is way) == bool(stays), "what was tried is not what stays")
        used = way.calls
        calls()
        expect((way.calls > used) == bool(stays), "a way that went back is called")
    told.clear()
    tried.against_eager(lambda *seen: told.append(seen))
    calls()
    expect(not told[0][2] and told[0][1] > told[0][0], f"eager is slower: {told}")
    part.made.ms = 20
    tried.against_eager(lambda *seen: told.append(seen))
    calls()
    expect(told[1][2] and part.made is part.eager, f"eager is faster: {told}")


def load(takeovers):
    """Many takeovers while four threads call: no call fails, results are right, and memory stays flat."""
    import torch
    from warploom.torch._trials import Part, Tried

    class Graph(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fused_0, self.fused_1 = Part(Way(1), Way(1)), Part(Way(2), Way(2))

        def forward(self, x):
            return self.fused_1(self.fused_0(x))

    tried, x, stop, faults, told = Tried(Graph()), torch.zeros(100_000), threading.Event(), [], []

    def caller():
        while not stop.is_set():
            if tried(x)[0] != 3:
                faults.append("wrong")

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

    threads = [threading.Thread(target=caller, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    sizes = []
    for number in range(int(takeovers)):
        way = Way(1 + number % 2)
        way.kept = torch.zeros(250_000)  # a megabyte that must go with the way
        tried.replace(tried.parts()[number % 2], way, lambda *seen: told.append(seen))
        until(lambda wanted=number + 1: len(told) >= wanted, 60, "a trial is decided")
        sizes.append(resident())
    stop.set()
    for thread in threads:
        thread.join()
    expect(not faults, faults[:3])
    half = len(sizes) // 2
    expect(max(sizes[half:]) < max(sizes[:half]) + (40 << 20), f"memory grows: {sizes[:: max(1, half // 5)]}")
    print(f"{sum(seen[2] for seen in told)} of {len(told)} stayed")


def idle():
    """What others take of the machine is told apart from what searches take."""
    from warploom.torch._background import LOOK, Others

    now, counts = [0.0], [0] * 7

    def passes(**ticks):
        now[0] += LOOK
        for name, count in ticks.items():
            counts[("user", "nice", "system", "idle").index(name)] += count

    others = Others(lambda: f"cpu  {' '.join(map(str, counts))} 0 0 0\ncpu0 1 2\n", lambda: now[0])
    for ticks, busy in (({"user": 20, "idle": 180}, False), ({"nice": 190, "user": 10}, False), ({"user": 120, "system": 30, "nice": 50}, True), ({"idle": 200}, False)):
        passes(**ticks)
        expect(others.look() == busy and others.look() == busy, f"{ticks}: {others.are_busy}")
    counts.clear()
    passes()
    expect(not others.look(), "without figures nothing is busy")


def share():
    """A search with a share of the machine does not ask whether others use it, and takes no more of it than was said; wrong shares are
    refused."""
    from warploom.torch import _parts as parts
    from warploom.torch._options import checked

    parts.Others, asked, left = functools.partial(types.SimpleNamespace, look=lambda: True), [], [1, 1, 1]

    def make(background, share):
        asked.append((background(), share))
        return "kernels"

    def alive():
        return left.pop() if left else None

    expect(parts._found(lambda: True, make, 0.25) == "kernels" and asked == [(False, 0.25)], asked)
    parts.LOOK = 0
    expect(parts._found(alive, make, None) is None and len(asked) == 1, "without a share nothing is searched while others are busy")
    expect(checked({"share": 0.25})["share"] == 0.25 and checked({"share": 1})["tune"] == "later", "a share is an option")
    for wrong, says in (
        ({"share": 0}, "above 0 and at most 1; found 0"), ({"share": 1.5}, "found 1.5"), ({"share": "half"}, "found 'half'"), ({"share": True}, "found True"),
        ({"share": 0.5, "tune": "first"}, "nothing is searched in the background"), ({"share": 0.5, "effort": "now"}, "nothing is searched"),
        ({"share": 0.5, "server": "unix:s"}, "the workers of"), ({"shares": 0.5}, 'did you mean "share"?'),
    ):  # fmt: skip
        try:
            checked(wrong)
        except TypeError as error:
            expect(says in str(error), f"{wrong}: {error}")
        else:
            expect(False, f"{wrong} is not refused")


def weights():
    """Weights that are written, moved or replaced while new kernels get them are those with which the next call computes."""
    import torch
    import warploom.torch
    from warploom.torch import _parts as parts

    module, x = layers(torch, 48), torch.randn(8, 48)
    made = []
    kept = parts.Kernels
    parts.Kernels = lambda *given, **named: made.append(kept(*given, **named)) or made[-1]
    compiled = torch.compile(module, backend="warploom", options={"tune": "first", "trials": 1})
    with torch.inference_mode():
        expect(torch.allclose(compiled(x), module(x), atol=1e-4), "wrong results")
    old = made[0]
    loaded = next(iter(old._loaded.values()))
    new = lambda: kept(old._folder, old._part, old._static, 2)  # noqa: E731
    fresh = new()
    fresh.prepare_like(old)
    expect(len(fresh._loaded) == 1 and next(iter(fresh._loaded.values())).mark == loaded.mark, "the weights are not prepared")
    before = loaded.found()
    module[0].weight.data = module[0].weight.data.bfloat16()
    expect(before is not None and loaded.found() is None, "a weight of another type is taken")
    fresh = new()
    fresh.prepare_like(old)
    expect(not fresh._loaded, "weights of another type are prepared")
    print(warploom.torch.report()[0]["weights"])


def trains():
    """A training step with the default: gradients are eager's before and after takeovers."""
    import torch
    import warploom.torch

    module, x = layers(torch, 32), torch.randn(16, 32)
    compiled = torch.compile(module, backend="warploom", options={"trials": 2})

    def step(function):
        module.zero_grad()
        function(x).square().sum().backward()
        return [parameter.grad.clone() for parameter in module.parameters()]

    wanted, end = step(module), time.monotonic() + 240
    while any(entry["later"] or (entry["kernels"] and entry["against_eager"] is None) for entry in warploom.torch.report()) or time.monotonic() < end - 239:
        expect(time.monotonic() < end, f"it is not done in time: {warploom.torch.report()}")
        got = step(compiled)
        expect(all(torch.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(got, wanted)), "wrong gradients")
        time.sleep(0.002)
    print(len(warploom.torch.report()), "graphs")


def searches(trials, share=None):
    """Compiles a graph whose search takes long, and says so."""
    import torch

    options = {"trials": int(trials)} | ({"share": float(share)} if share else {})
    compiled = torch.compile(layers(torch, 80), backend="warploom", options=options)
    with torch.inference_mode():
        compiled(torch.randn(32, 80))
    print("searching", flush=True)
    time.sleep(600)


# --- The test.


def started(scratch, *words):
    environment = scratch.environment | {"WARPLOOM_BIN_DIR": str(BIN)}
    return subprocess.Popen([torch_python(), __file__, "--child", *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(scratch, *words):
    with started(scratch, *words) as child:
        out, err = child.communicate(timeout=400)
    expect(child.returncode == 0, f"{words}: {out[-2000:]}{err[-4000:]}")
    print(words, out.strip()[-300:])


def tuning():
    """Returns the ids of the programs that search in the background."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if (b"--idle" in line or b"--share" in line) and b"tune" in line:
            found.append((int(folder.name), line))
    return found


def gives_way(scratch):
    """Another process that needs kernels gets them although a search is going on, which ends with its process."""
    child = started(scratch, "searches", "100000")
    expect(child.stdout.readline().strip() == "searching", "no first answer")
    mine = lambda: [pid for pid, line in tuning() if str(child.pid).encode() in line]  # noqa: E731
    until(mine, 60, "a search in the background")
    first = mine()
    until(lambda: os.sched_getscheduler(first[0]) == os.SCHED_IDLE and os.getpriority(os.PRIO_PROCESS, first[0]) == 19, 10, "a search for idle time")
    run(scratch, "answers")
    until(lambda: mine() and mine() != first, 60, "the search goes on")
    # A command that needs the store does not wait for the search's end, either.
    second = mine()
    (scratch.root / "g.graph").write_text(graphs.EXP)
    scratch.run("warploom", "tune", "g.graph", "--trials", 1)
    until(lambda: mine() and mine() != second, 60, "the search goes on after a command")
    child.terminate()
    child.wait()
    until(lambda: not mine(), 30, "the search ends with its process")
    child.stdout.close()
    child.stderr.close()


def takes_its_share(scratch):
    """A search with a share of the machine has the priority of other programs, in the time that it has."""
    child = started(scratch, "searches", "100000", "0.25")
    expect(child.stdout.readline().strip() == "searching", "no first answer")
    mine = lambda: [(pid, line) for pid, line in tuning() if str(child.pid).encode() in line]  # noqa: E731
    until(mine, 60, "a search in the background")
    pid, line = mine()[0]
    expect(line[line.index(b"--share") + 1] == b"0.25" and b"--idle" not in line, line)
    until(lambda: os.getpriority(os.PRIO_PROCESS, pid) == 1, 10, "its time is told apart from that of others")
    expect(os.sched_getscheduler(pid) == os.SCHED_OTHER, "a search with a share")
    child.terminate()
    child.wait()
    until(lambda: not mine(), 30, "the search ends with its process")
    child.stdout.close()
    child.stderr.close()


def main():
    if "--child" in sys.argv:
        sys.path.insert(0, str(python_package()))
        words = sys.argv[sys.argv.index("--child") + 1 :]
        return globals()[words[0]](*words[1:])
    torch_python()
    with Scratch() as scratch:
        scratch.environment["XDG_CACHE_HOME"] = scratch.path("cache")
        run(scratch, "trials")
        run(scratch, "idle")
        run(scratch, "share")
        takes_its_share(scratch)
        run(scratch, "weights")
        run(scratch, "load", str(max(6, int(100 * SCALE))))
        gives_way(scratch)
        run(scratch, "takes_over")
        run(scratch, "knows")
        run(scratch, "trains")
    return 0


if __name__ == "__main__":
    sys.exit(main())
