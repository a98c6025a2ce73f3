#!/usr/bin/env python3
"""The time that the coordinator's pages take while a search runs, and their cost for the search.

usage: web_page.py [--bin build/release/bin] [--model tests/data/layernorm_residual.onnx] [--records 10000] [--loads 40]
                   [--trials 24] [--rounds 8]

A coordinator and a worker share the machine; the store has many records of 200 models. First a Chromium on the same machine loads each
page again and again while the model is tuned anew (--retune): milliseconds from the navigation until the data is shown. Then the model is
tuned in turns alone and watched: a client makes the requests of an open page of the job, as often as the page does, and loads other pages
every few seconds. It makes only the requests, since a user's browser would be on another machine. Prints seconds of each job, and watched
over alone by medians and by least. Run it on an idle machine."""

import argparse
import contextlib
import json
import pathlib
import statistics
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/web")]

LOAD_EVERY, POLL_EVERY = 5.0, 2.0  # seconds between two loads of pages, and between two requests of the job's page
FILES = ("style.css", "page.js", "charts.js", "job.js", "icon.svg")


class Viewer(threading.Thread):
    """Makes the requests of a browser that shows the newest job."""

    def __init__(self, base):
        super().__init__()
        self.base, self.over, self.asked = base, threading.Event(), 0

    def get(self, path):
        with urllib.request.urlopen(self.base + path, timeout=30) as answer:
            text = answer.read()
        self.asked += 1
        return text

    def run(self):
        loaded = 0.0
        while not self.over.wait(POLL_EVERY):
            jobs = json.loads(self.get("/api/jobs"))["jobs"]
            if time.monotonic() - loaded > LOAD_EVERY:
                loaded = time.monotonic()
                for path in ("/", "/records", *(f"/web/{name}" for name in FILES), "/api/records", "/api/records-by", "/api/workers"):
                    self.get(path)
            if jobs:
                job = f"/api/jobs/{jobs[0]['id']}"
                for path in (job, f"{job}/curves", f"{job}/kernels"):
                    self.get(path)


class Fleet:
    """A coordinator and a worker in a scratch folder."""

    def __init__(self, scratch, model):
        self.scratch, self.model, self.server = scratch, model, ["--server", "unix:s"]

    def start(self):
        self.coordinator = self.scratch.start("warploomd", "--store", "a.db", "--listen", "unix:s", "--http", "127.0.0.1:0", name="coordinator")
        self.base = "http://" + self.scratch.logged("coordinator", r"(?s).*metrics on (\S+)", "it serves pages")
        self.worker = self.scratch.start("warploom-worker", *self.server, "--devices", "cpu", name="worker")

    def stop(self):
        self.worker.kill()
        self.coordinator.process.terminate()
        self.coordinator.wait(60)
        (self.scratch.root / "coordinator.log").unlink()

    def tune(self, trials):
        begun = time.monotonic()
        self.scratch.run("warploom", "tune", self.model, *self.server, "--retune", "--seed", 0, "--trials", trials, deadline=3600)
        return time.monotonic() - begun


def page_loads(scratch, fleet, loads, trials):
    """Returns for each page the milliseconds that its loads took while searches ran."""
    from browser import Browser

    over = threading.Event()

    def search():
        while not over.is_set():
            fleet.tune(trials)

    searching = threading.Thread(target=search)
    searching.start()
    browser = Browser(scratch)
    took = {"/": [], "/jobs/N": [], "/workers": [], "/records": [], "/records?model=M": []}
    try:
        for number in range(loads + 1):  # load 0 fills the browser's caches and does not count
            with urllib.request.urlopen(fleet.base + "/api/jobs", timeout=30) as answer:
                newest = json.loads(answer.read())["jobs"][0]["id"]
            for page in took:
                browser.open("about:blank")
                browser.call("Page.navigate", url=fleet.base + page.replace("N", str(newest)).replace("=M", f"=model-{number % 200:03}.onnx"))
                ms = browser.until("performance.getEntriesByName('shown')[0]?.startTime", f"{page} is shown")
                if number > 0:
                    took[page].append(ms)
    finally:
        over.set()
        searching.join()
        browser.close()
    return took


def searches(fleet, trials, rounds):
    """Returns the seconds that jobs took, alone and watched."""
    seconds = {"alone": [], "watched": []}
    for number in range(rounds + 1):
        for how in ("alone", "watched")[:: 1 if number % 2 else -1]:
            viewer = Viewer(fleet.base)
            if how == "watched":
                viewer.start()
            took = fleet.tune(trials)
            if how == "watched":
                viewer.over.set()
                viewer.join()
            if number > 0:
                seconds[how].append(took)
                print(f"round {number} {how:8} {took:7.2f} s, {viewer.asked} requests", flush=True)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "tests/data/layernorm_residual.onnx")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=40)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    import harness
    import many_records

    harness.BIN = args.bin.resolve()
    with harness.Scratch() as scratch:
        fleet = Fleet(scratch, str(args.model.resolve()))
        fleet.start()
        fleet.tune(2)
        fleet.stop()
        many_records.multiply(scratch.path("a.db"), args.records)
        fleet.start()
        if args.loads > 0:
            took = page_loads(scratch, fleet, args.loads, args.trials)
            for page, all_ms in took.items():
                ms = sorted(all_ms)
                print(f"{page:18} {len(ms)} loads, ms: median {statistics.median(ms):6.1f}, p95 {ms[int(0.95 * (len(ms) - 1))]:6.1f}, most {ms[-1]:6.1f}", flush=True)
            ms = sorted(sum(took.values(), []))
            print(f"{'all':18} {len(ms)} loads, ms: median {statistics.median(ms):6.1f}, p95 {ms[int(0.95 * (len(ms) - 1))]:6.1f}, most {ms[-1]:6.1f}")
        if args.rounds > 0:
            seconds = searches(fleet, args.trials, args.rounds)
            for how, of in (("medians", statistics.median), ("least", min)):
                print(f"watched over alone by {how}: {of(seconds['watched']) / of(seconds['alone']):.3f}")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
