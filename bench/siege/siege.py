#!/usr/bin/env python3
"""The effect of attackers on a coordinator's other callers: latencies of eight honest clients, and the time of a search.

usage: siege.py [--bin build/release/bin] [--seconds 600] [--alone 120] [--trials 60] [--memory-gb 2.5] [--kinds workers,plans,giants,idle]
       siege.py --fetch SECONDS          no attack: eight clients that only fetch, without waiting between calls, beside a search

The coordinator is the real program, limited to --memory-gb of address space; one honest worker with a token measures a search over and over
(`--devices fake`, so that all searches have the same candidates). First only the clients and the search run, then `siege attack` too:
workers without credentials that hold leases and use other workers' names, thirteen callers that submit large graphs and cancel the call
after a second, 600 idle connections. The attackers run at a lower priority (nice 5), since they would have machines of their own. Prints
the clients' percentiles, the seconds of the searches and the coordinator's memory, each with and without the attack. Run it on an idle machine.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
SMALL = 'graph {\n  %0 = input "x" : f32[64,32] normal(0,1)\n  %1 = tanh %0 : f32[64,32]\n  %2 = tanh %1 : f32[64,32]\n  output "y" %2\n}\n'


class Fleet:
    def __init__(self, programs, folder, memory_gb):
        self.programs, self.folder, self.children = programs, folder, []
        for name, role in (("bench", "worker"), ("client", "client")):
            token = self.run("warploomd", "token", name, "--callers", "callers", "--role", role, "--expires", "1d")
            (folder / f"{name}.token").write_text(token)
        limit = int(memory_gb * 2**30)
        self.daemon = self.start(
            "warploomd", "--store", "store.db", "--listen", "127.0.0.1:0,unix:socket", "--callers", "callers",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        while (found := re.search(r"listening on ([^,\s]+)", (folder / "warploomd.log").read_text())) is None:
            time.sleep(0.05)
        self.address = found.group(1)
        self.start("warploom-worker", "--server", self.address, "--token-file", "bench.token", "--name", "w", "--devices", "fake")

    def run(self, name, *arguments):
        done = subprocess.run([self.programs / name, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{name} {arguments}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def start(self, name, *arguments, **options):
        log = open(self.folder / f"{name}.log", "w")
        child = subprocess.Popen([self.programs / name, *map(str, arguments)], cwd=self.folder, stdout=log, stderr=subprocess.STDOUT, **options)
        self.children.append(child)
        return child

    def tune(self, graph, *options):
        begun = time.monotonic()
        report = self.run("warploom", "tune", graph, "--server", self.address, "--token-file", "client.token", "--json", "-", *options)
        return time.monotonic() - begun, json.loads(report)

    def memory(self):
        lines = pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text()
        return {name: int(re.search(rf"{name}:\s+(\d+)", lines).group(1)) / 2**20 for name in ("VmRSS", "VmHWM", "VmPeak")}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def phase(fleet, seconds, trials, kinds="", clients="clients"):
    searches, over = [], threading.Event()

    def search():
        while not over.is_set():
            searches.append(fleet.tune("search.graph", "--retune", "--trials", trials)[0])

    attack = None
    if kinds:
        attack = subprocess.Popen(
            [fleet.programs / "siege", "attack", fleet.address, "client.token", str(seconds), kinds], cwd=fleet.folder, stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda: os.nice(5),
        )
    beside = threading.Thread(target=search)
    beside.start()
    calls = json.loads(fleet.run("siege", clients, fleet.address, "client.token", seconds, "keys"))
    over.set()
    did = json.loads(attack.communicate()[0]) if attack else {}
    beside.join()
    if fleet.daemon.poll() is not None:
        raise SystemExit(f"the coordinator has ended\n{(fleet.folder / 'warploomd.log').read_text()[-3000:]}")
    out = {"clients": calls, "searches_s": searches, "memory_gb": fleet.memory(), "attack": did}
    print(json.dumps(out), flush=True)
    return out


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    for name, value in (("--seconds", 600), ("--alone", 120), ("--trials", 60)):
        options.add_argument(name, type=int, default=value)
    options.add_argument("--fetch", type=int, default=0, metavar="SECONDS")
    options.add_argument("--memory-gb", type=float, default=2.5)
    options.add_argument("--kinds", default="workers,plans,giants,idle")
    asked = options.parse_args()
    import graphs

    with tempfile.TemporaryDirectory(prefix="wl-") as name:
        folder = pathlib.Path(name)
        (folder / "small.graph").write_text(SMALL)
        (folder / "search.graph").write_text(graphs.SOFTMAX)
        with Fleet(asked.bin.resolve(), folder, asked.memory_gb) as fleet:
            keys = [group["key"] for graph in ("small.graph", "search.graph") for group in fleet.tune(graph, "--trials", 2)[1]["groups"]]
            (folder / "keys").write_text("\n".join(keys) + "\n")
            if asked.fetch:
                fetches = phase(fleet, asked.fetch, asked.trials, clients="fetch")["clients"]["fetch"]
                print(f"{fetches['calls'] / asked.fetch:.0f} fetches a second, p50 {fetches['p50']:.2f} ms, p99 {fetches['p99']:.2f}, most {fetches['most']:.0f}")
                return
            alone = phase(fleet, asked.alone, asked.trials)
            beside = phase(fleet, asked.seconds, asked.trials, asked.kinds)
    for kind in ("all", "fetch", "create"):
        a, b = alone["clients"][kind], beside["clients"][kind]
        print(f"p99 of the clients, {kind}: {b['p99']:.2f} ms beside the attack, {a['p99']:.2f} alone: {b['p99'] / a['p99']:.2f} times (most {b['most']:.0f} and {a['most']:.0f} ms)")
    one, other = (statistics.median(part["searches_s"]) for part in (beside, alone))
    print(f"a search, median: {one:.2f} s beside the attack, {other:.2f} alone: {one / other:.2f} times (most {max(beside['searches_s']):.1f} s)")
    print(f"the coordinator's memory: {beside['memory_gb']['VmHWM']:.2f} GB resident at most, address space {beside['memory_gb']['VmPeak']:.2f} of {asked.memory_gb} GB")


if __name__ == "__main__":
    main()
