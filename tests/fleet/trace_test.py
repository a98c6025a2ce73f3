#!/usr/bin/env python3
"""One trace id leads from client to runner: the id given by --trace or by the variable TRACEPARENT, or else a new one, is in the report, in
the list of jobs and in the log lines of coordinator, worker and runner, even after the coordinator was killed."""

import json
import re

import graphs
from harness import Scratch, expect, until

JSON = ["--log-format", "json"]
SERVER = ["--server", "unix:s"]
FIRST, SECOND = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"


def lines(scratch, name, trace=None):
    """Returns the entries of a log; if a trace id is given, only the entries with this id."""
    entries = [json.loads(line) for line in (scratch.root / f"{name}.log").read_text().splitlines() if line.startswith("{")]
    return [entry for entry in entries if trace in (None, entry.get("trace"))]


def tune(scratch, seed, *options, **environment):
    before = dict(scratch.environment)
    scratch.environment.update(environment)
    done = scratch.run("warploom", "tune", "g.graph", *SERVER, "--trials", 4, "--seed", seed, "--retune", "--json", "-", *options)
    scratch.environment = before
    return done.json()["job"]


def coordinator(scratch):
    return scratch.serve("s", *JSON, store="a.db")


def goes_everywhere(scratch):
    job = tune(scratch, 1, "--trace", FIRST)
    expect(job["trace"] == FIRST, job)
    messages = [entry["message"] for entry in lines(scratch, "coordinator", FIRST)]
    expect(messages == ["job created", "job ended"], messages)
    ended = lines(scratch, "coordinator", FIRST)[-1]
    expect(ended["job"] == job["name"] and ended["state"] == "succeeded" and ended["label"] == "g.graph", ended)
    # A worker logs that it reported a batch once the coordinator has answered, which may be after the end of the job. So the test waits for
    # these lines of the log.
    for what in (r"leased a batch; candidates: \d+", r"reported a batch; trials: \d+", r"runner: set up; arguments: \d+, seed: \d+"):
        until(lambda: any(re.match(what, entry["message"]) for entry in lines(scratch, "worker", FIRST)), 60, what)
    listed = scratch.run("warploom", "jobs", *SERVER, "--json", "-").json()["jobs"]
    expect(listed[0]["trace"] == FIRST and FIRST in scratch.run("warploom", "jobs", *SERVER).out, listed)


def comes_from_the_environment(scratch):
    job = tune(scratch, 2, TRACEPARENT=f"00-{SECOND}-b7ad6b7169203331-01")
    expect(job["trace"] == SECOND, job)
    made = [tune(scratch, 3 + i, TRACEPARENT=broken)["trace"] for i, broken in enumerate(("", "00-junk", f"00-{'0' * 32}-b7ad6b7169203331-01"))]
    expect(len(set(made)) == 3 and all(re.fullmatch(r"[0-9a-f]{32}", trace) for trace in made), made)
    expect(tune(scratch, 6, "--trace", f"00-{FIRST}-b7ad6b7169203331-00", TRACEPARENT=f"00-{SECOND}-b7ad6b7169203331-01")["trace"] == FIRST, "the option")
    for wrong in ("xyz", FIRST.upper(), "0" * 32):
        done = scratch.run("warploom", "tune", "g.graph", *SERVER, "--trace", wrong, expect=1)
        expect("--trace" in done.err and "32 hexadecimal digits" in done.err, done.err)


def survives(scratch, daemon, worker):
    """A job that waits for a worker keeps its trace id when the coordinator is killed and restarted."""
    worker.kill()
    trace = "c" * 32
    waiting = scratch.start("warploom", "tune", "g.graph", *SERVER, "--trials", 4, "--seed", 9, "--retune", "--trace", trace, name="waiting")
    until(lambda: lines(scratch, "coordinator", trace), 60, "the job is there")
    daemon.kill()
    coordinator(scratch)
    until(lambda: [entry for entry in lines(scratch, "coordinator", trace) if entry["message"] == "job goes on"], 60, "the job goes on")
    scratch.start("warploom-worker", *SERVER, "--devices", "fake", "--verbose", *JSON, name="worker")
    expect(waiting.wait(120) == 0, (scratch.root / "waiting.log").read_text())
    expect(lines(scratch, "coordinator", trace)[-1]["message"] == "job ended", lines(scratch, "coordinator", trace))
    until(lambda: [entry for entry in lines(scratch, "worker", trace) if entry["message"].startswith("runner: ")], 60, "the runner has it")


def main():
    with Scratch() as scratch:
        daemon = coordinator(scratch)
        worker = scratch.start("warploom-worker", *SERVER, "--devices", "fake", "--verbose", *JSON, name="worker")
        (scratch.root / "g.graph").write_text(graphs.SOFTMAX)
        goes_everywhere(scratch)
        comes_from_the_environment(scratch)
        survives(scratch, daemon, worker)
        print("ok")


if __name__ == "__main__":
    main()
