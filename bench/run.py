#!/usr/bin/env python3
"""The figures that bench/README.md quotes.

Every contender runs in its own process. When all have prepared, they are measured in interleaved rounds with gaps,
because some frameworks keep spinning after a call. Each figure is a fraction of the machine's limit, measured in
the same rounds: the better of plain and non-temporal copy of the same bytes (or reading them), or the peak rate of
multiply-adds or of exp and erf, or of both one after the other.

    bench/run.py                    Warploom and the machine's limit
    bench/run.py --peers            and the other frameworks, from build/venv-peers
    bench/run.py --only sgemm ...   some workloads
    bench/run.py --parts            the memory-bound parts of models
    bench/run.py --products         products alone: matrices, constant weights, convolutions, attention; --only 'conv_*'
    bench/run.py --libraries onednn     and Warploom with that library's kernels as candidates: where they win, and by how much
"""

import argparse
import datetime
import fnmatch
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import parts
import peers
import products
import workloads

ROOT = workloads.ROOT
WORK = ROOT / "build" / "bench"
BIN = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", ROOT / "build" / "release" / "bin"))
LIMIT = "limit"
WARPLOOM = "warploom"
WITH_LIBRARY = "with_library"
# The requests to bench/machine_limit for each kind of arithmetic. The limit is the result of the fastest of them: products of bf16 can use
# tile registers, pairs, or f32.
ARITHMETIC = {"fma": ["fma"], "bf16": ["fma", "bf16", "tiles"]}


class Limit:
    """The machine's limit for one workload, measured by bench/machine_limit with one request per round."""

    title = "limit"

    def __init__(self, workload, options):
        self.workload = workload
        self.bytes = workloads.moved_bytes(workload.model())
        self.kinds = {}
        self.rates = {}
        self.child = Child([machine_limit(), str(options.threads), str(options.seconds / 2)])

    def time(self, seconds):
        for function in self.workload.elementary:
            self.rates.setdefault(function, []).extend(self.child.ask(function)["gelements"])
        if self.workload.limit not in ARITHMETIC:
            reply = self.child.ask(f"{self.workload.limit} {self.bytes}")
            for kind, samples in reply.items():
                self.kinds.setdefault(kind, []).extend(samples)
            return []
        requests = ARITHMETIC[self.workload.limit]
        return [self.workload.flops / rate for request in requests for rate in self.child.ask(request)["gflops"]]

    def arithmetic_ns(self):
        return sum(self.workload.elementary[function] / max(rates) for function, rates in self.rates.items())

    def samples(self, collected):
        """Returns the samples of the copy with the better median, plain or non-temporal. If arithmetic takes
        longer, returns one time computed from its best rate, since that is a peak. Multiply-adds and elementary functions
        share the units that compute them, so their times add up."""
        if not self.kinds:
            return [min(collected) + self.arithmetic_ns()]
        samples = min(self.kinds.values(), key=statistics.median)
        return samples if statistics.median(samples) >= self.arithmetic_ns() else [self.arithmetic_ns()]

    def close(self):
        self.child.close()


class Peer:
    """A contender that is another framework, which runs in build/venv-peers."""

    def __init__(self, name, workload, options):
        self.title = peers.TITLES[name]
        python = ROOT / "build" / "venv-peers" / "bin" / "python"
        command = [python, ROOT / "bench" / "peers.py", name, workload.name, str(options.threads)]
        self.child = Child(command, env=peers.environment(name, options.threads))
        ready = self.child.read()
        self.facts = {"version": ready["ready"], "prepare_s": ready["prepare_s"]}
        self.sample = np.array(ready["sample"])

    def time(self, seconds):
        return self.child.ask(f"time {seconds}")["ns"]

    def samples(self, collected):
        return collected

    def close(self):
        self.child.close()


class Warploom:
    """The contender Warploom: the built programs tune a workload once and then run its bundle."""

    title = "Warploom"

    def __init__(self, workload, options, libraries="none"):
        folder = WORK / (workload.name if libraries == "none" else f"{workload.name}.{libraries}")
        folder.mkdir(parents=True, exist_ok=True)
        model = folder / "model.onnx"
        onnx.save(workload.model(), model)
        self.bundle = folder / "bundle"
        # The benchmark has its own store, so that it neither reads nor fills the user's.
        tune = [str(model), "--store", str(WORK / "store.db"), "--out", str(self.bundle), "--trials", str(options.trials), "--libraries", libraries]
        start = time.perf_counter()
        report = warploom("tune", *tune, "--json", "-")
        self.facts = {
            "version": report["environment"]["warploom"],
            "prepare_s": round(time.perf_counter() - start, 2),
            "groups": [
                {key: group[key] for key in ("kernels", "best_ns", "default_ns", "default_estimated", "trials", "plan", "library")} for group in report["groups"]
            ],
        }
        self.calls = max(3, min(300, int(options.seconds * 1e9 / max(1.0, report["totals"]["best_ns"]))))
        warploom("run", str(self.bundle), "--check", "--json", "-")

    def time(self, seconds):
        return warploom("run", str(self.bundle), "--repeat", str(self.calls), "--json", "-")["time"]["samples_ns"]

    def samples(self, collected):
        return collected

    def close(self):
        pass


class Child:
    """A child process that answers each line of input with one line of JSON."""

    def __init__(self, command, env=None):
        self.name = pathlib.Path(command[0]).name if len(command) < 4 else command[2]
        self.log = open(WORK / f"{self.name}.log", "w+")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=pipe, stdout=pipe, stderr=self.log, text=True, env=env
        )

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        return self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.close()
            self.log.seek(0)
            raise RuntimeError(f"{self.name} ended: " + " | ".join(self.log.read().strip().splitlines()[-3:]))
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def machine_limit():
    """Builds bench/machine_limit.cpp for this machine."""
    program, source = WORK / "machine_limit", ROOT / "bench" / "machine_limit.cpp"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        flags = ["-std=c++20", "-O3", "-march=native", "-pthread"]
        subprocess.run([os.environ.get("CXX", "g++"), *flags, str(source), "-o", str(program)], check=True)
    return program


def warploom(*arguments):
    """Runs the program warploom and returns its JSON report."""
    done = subprocess.run([BIN / "warploom", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"warploom {arguments[0]} exited {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def start_contenders(workload, options):
    """Starts and prepares the contenders one after the other; reports and leaves out those that fail."""
    makers = {LIMIT: lambda: Limit(workload, options)}
    if "warploom" in options.contenders:
        makers[WARPLOOM] = lambda: Warploom(workload, options)
    if options.libraries != "none":
        makers[WITH_LIBRARY] = lambda: Warploom(workload, options, options.libraries)
    for name in peers.PEERS:
        if name in options.contenders:
            makers[name] = lambda name=name: Peer(name, workload, options)
    running = {}
    for name, make in makers.items():
        try:
            running[name] = make()
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            print(f"bench: {workload.name}: {name} left out: {error}", file=sys.stderr)
    return running


def disagreement(running):
    """Returns the largest difference between two peers' outputs, relative to the magnitude of the outputs."""
    samples = {name: c.sample for name, c in running.items() if isinstance(c, Peer)}
    if len(samples) < 2:
        return {}
    middle = np.median(list(samples.values()), axis=0)
    scale = np.sqrt((middle**2).mean())
    return {name: float(np.abs(sample - middle).max() / scale) for name, sample in samples.items()}


def take_turns(running, options, argument):
    """Returns the results of time(argument) of every contender, by name, with one entry for each of the interleaved rounds. The order of
    each round is drawn, so that no contender always follows the same one. Draws are the same in every run."""
    collected = {name: [] for name in running}
    draw = random.Random(1)
    for _ in range(options.rounds):
        for name in draw.sample(list(running), len(running)):
            collected[name].append(running[name].time(argument))
            time.sleep(options.gap)
    return collected


def measure(running, options):
    collected = take_turns(running, options, options.seconds)
    return {name: running[name].samples([sample for samples in rounds for sample in samples]) for name, rounds in collected.items()}


def bench(workload, options):
    running = start_contenders(workload, options)
    try:
        timed = measure(running, options)
        limit = timed.pop(LIMIT)
        errors = disagreement(running)
    finally:
        for contender in running.values():
            contender.close()
    row = {
        "workload": workload.name,
        "title": workload.title,
        "limit": {"kind": workload.limit, "median_ns": statistics.median(limit), "min_ns": min(limit)},
        "bytes": workloads.moved_bytes(workload.model()),
        "flops": workload.flops,
        "contenders": {},
    }
    if running[LIMIT].rates:
        row["limit"]["arithmetic_ns"] = running[LIMIT].arithmetic_ns()
    if running[LIMIT].kinds:
        row["limit"]["copies"] = {kind: statistics.median(samples) for kind, samples in running[LIMIT].kinds.items()}
    for name, samples in timed.items():
        median, least = statistics.median(samples), min(samples)
        row["contenders"][name] = {
            "median_ns": median,
            "min_ns": least,
            "calls": len(samples),
            "fraction": row["limit"]["median_ns"] / median,
            "fraction_of_minima": row["limit"]["min_ns"] / least,
            "difference": errors.get(name),
            **getattr(running[name], "facts", {}),
        }
    return row


def rate(row, nanoseconds):
    """Formats a measurement in the unit of its limit: GF/s or GB/s."""
    return f"{row['flops'] / nanoseconds:.0f} GF/s" if row["limit"]["kind"] in ARITHMETIC else f"{row['bytes'] / nanoseconds:.1f} GB/s"


def print_row(row):
    limit = row["limit"]
    print(f"\n{row['title']}: limit {rate(row, limit['median_ns'])} ({limit['kind']}, median), {limit['median_ns'] / 1e6:.3f} ms")
    print(f"  {'':14}{'median ms':>11}{'min ms':>11}{'rate':>13}{'of limit':>10}{'minima':>8}")
    for name, figures in row["contenders"].items():
        title = peers.TITLES.get(name, {WITH_LIBRARY: "with library"}.get(name, Warploom.title))
        print(
            f"  {title:14}{figures['median_ns'] / 1e6:11.3f}{figures['min_ns'] / 1e6:11.3f}"
            f"{rate(row, figures['median_ns']):>13}{figures['fraction']:10.2f}{figures['fraction_of_minima']:8.2f}"
        )


def print_summary(rows):
    names = [WARPLOOM, *peers.PEERS]
    titles = [Warploom.title, *peers.TITLES.values()]
    print("\nFraction of the machine's limit (medians)")
    print("| workload | " + " | ".join(titles) + " |\n|---|" + "---|" * len(names))
    for row in rows:
        cells = [f"{row['contenders'][n]['fraction']:.2f}" if n in row["contenders"] else "–" for n in names]
        print(f"| {row['title']} | " + " | ".join(cells) + " |")


def print_won(rows):
    """Prints where kernels of a library were fastest, and how much faster the workload is with them, by medians and by least samples."""
    print("\nWith kernels of the library as candidates\n| workload | generated, ms | with the library, ms | medians | minima | won by |\n|---|---|---|---|---|---|")
    for row in rows:
        own, other = (row["contenders"].get(name) for name in (WARPLOOM, WITH_LIBRARY))
        if own is None or other is None:
            continue
        won = sorted({group["library"] or "generated" for group in other["groups"]})
        ratios = [f"{own[what] / other[what]:.2f}" for what in ("median_ns", "min_ns")]
        cells = [row["title"], f"{own['median_ns'] / 1e6:.3f}", f"{other['median_ns'] / 1e6:.3f}", *ratios, ", ".join(won)]
        print("| " + " | ".join(cells) + " |")


def print_ratios(rows):
    """Prints the ratio of the best other framework's time to Warploom's, for each part and as a geometric mean."""
    ratios = []
    for row in rows:
        figures = {name: c["median_ns"] for name, c in row["contenders"].items()}
        own = figures.pop(WARPLOOM, None)
        figures.pop(WITH_LIBRARY, None)
        if own is None or not figures:
            continue
        best = min(figures, key=figures.get)
        ratios.append(figures[best] / own)
        print(f"{row['title']}: {ratios[-1]:.2f} x {peers.TITLES[best]}, the best of the others")
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


def machine():
    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    flags = next((l.split(":")[1].split() for l in open("/proc/cpuinfo") if l.startswith("flags")), [])
    vector = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else platform.machine()
    return {"cpu": model, "vector": vector, "cores": os.cpu_count(), "system": platform.platform()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="the other frameworks too")
    parser.add_argument("--parts", action="store_true", help="the memory-bound parts of models instead")
    parser.add_argument("--products", action="store_true", help="products alone instead")
    known = [w.name for w in peers.EVERY]
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="names, or patterns such as 'conv_*'")
    parser.add_argument("--contenders", nargs="+", metavar="NAME", choices=[WARPLOOM, *peers.PEERS])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--libraries", default="none", choices=["none", "onednn"], help="a library whose kernels are candidates of one more contender")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="per contender and round")
    parser.add_argument("--gap", type=float, default=0.15, help="seconds between contenders")
    parser.add_argument("--trials", type=int, default=64, help="per group, for Warploom's tuning")
    parser.add_argument("--reuse", action="store_true", help="reuse what an earlier run tuned")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    every = [w.name for w in (products.PRODUCTS if options.products else workloads.WORKLOADS)]
    if options.parts:
        every = [*parts.ALSO, *(w.name for w in parts.PARTS)]
    for pattern in options.only or ():
        if not fnmatch.filter(known, pattern):
            parser.error(f"--only {pattern}: no such workload; known are {', '.join(known)}")
    options.only = [name for pattern in options.only or every for name in fnmatch.filter(known, pattern)]
    options.contenders = options.contenders or [WARPLOOM, *(peers.PEERS if options.peers else ())]

    # Confines all processes that are started to these cores, because Warploom tunes for as many threads as there are cores.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    WORK.mkdir(parents=True, exist_ok=True)
    if not options.reuse:
        for left in WORK.glob("store.db*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    rows = []
    for name in options.only:
        rows.append(bench(peers.by_name(name), options))
        print_row(rows[-1])
        sys.stdout.flush()
    print_summary(rows)
    print_ratios(rows)
    if options.libraries != "none":
        print_won(rows)
    now = datetime.datetime.now(datetime.timezone.utc)
    result = {
        "date": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "threads": options.threads,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "workloads": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    kind = ("parts-" if options.parts else "products-" if options.products else "") + ("peers" if options.peers else "warploom")
    cpu = "-".join("".join(c if c.isalnum() else " " for c in result["machine"]["cpu"].lower()).split())
    path = options.out / f"{kind}-{cpu}-{result['machine']['cores']}c-{now:%Y%m%d-%H%M}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nWritten to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")


if __name__ == "__main__":
    main()
