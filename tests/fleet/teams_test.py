#!/usr/bin/env python3
"""Two teams on one coordinator, with the real programs and tokens: what each team lists and fetches, a worker that serves only one of them,
the number of jobs that a team may have, and the messages for wrong rows and options."""

import json

import graphs
from harness import Scratch, expect, until

ROWS = "team vision jobs=1 weight=2\nteam speech publish=confirmed\n"


def token(scratch, name, role, team=None):
    """Makes a token; returns the options with which a program uses it."""
    scratch.token(name, role, *(["--team", team] if team else []))
    return ["--token-file", f"{name}.token"]


def listed(scratch, what, *how):
    return json.loads(scratch.run("warploom", what, *how, "--json", "-").out)[what]


def wrong_steps(scratch, server, vision):
    late = ["warploom", "tune", "g.graph", "--server", *server, *vision, "--retune"]
    first = scratch.start(*late, name="first")
    until(lambda: any(job["state"] in ("queued", "running") for job in listed(scratch, "jobs", "--server", *server, *vision)), 30, "a job waits")
    done = scratch.run(*late, expect=7)
    expect("team vision has 1 jobs that are not done, and may have 1 at once" in done.err and "cancel one" in done.err, done.err)
    running = [job["name"] for job in listed(scratch, "jobs", "--server", *server, *vision) if job["state"] in ("queued", "running")]
    scratch.run("warploom", "cancel", running[0], "--server", *server, *vision)
    first.wait(60)
    steps = [
        (["warploomd", "token", "x", "--callers", "callers", "--role", "client", "--team", "visoin"], "no row says team visoin"),
        (["warploomd", "--store", "x.db", "--listen", "localhost:0", "--callers", "wrong"], "callers wrong, line 1: weight: expected an integer from 1"),
    ]
    scratch.callers("team a weight=much\n", "wrong")
    for command, says in steps:
        done = scratch.run(*command, expect=1)
        expect(says in done.err, done.err)


def main():
    with Scratch() as scratch:
        scratch.callers(ROWS)
        (scratch.root / "g.graph").write_text(graphs.EXP)
        vision, speech = token(scratch, "vision", "client", "vision"), token(scratch, "speech", "client", "speech")
        own, shared = token(scratch, "own", "worker", "vision"), token(scratch, "fleet", "worker")
        scratch.start("warploomd", "--store", "a.db", "--listen", "127.0.0.1:0,unix:s", "--callers", "callers", name="coordinator")
        server = [scratch.logged("coordinator", r"listening on ([^,]+),", "it listens")]
        worker = scratch.start("warploom-worker", "--server", *server, *own, "--devices", "fake", name="own")
        tune = ["warploom", "tune", "g.graph", "--server", *server, "--trials", 2]
        scratch.run(*tune, *vision)
        expect([row["team"] for row in listed(scratch, "workers", "--server", *server, *vision)] == ["vision"], "the worker's team")
        records = listed(scratch, "records", "--server", *server, *vision)
        expect(records and all(record["team"] == "vision" for record in records), records)
        get = ["warploom", "get", "g.graph", "--server", *server]
        scratch.run(*get, *vision)
        scratch.run(*get, *speech, expect=3)
        expect(listed(scratch, "records", "--server", *server, *speech) == [], "another team's records")
        names = [[job["name"] for job in listed(scratch, "jobs", "--server", *how)] for how in ([*server, *vision], [*server, *speech], ["unix:s"])]
        expect(len(names[0]) == 2 and len(names[1]) == 1 and sorted(names[2]) == sorted(names[0] + names[1]), names)
        name = names[0][0]
        done = scratch.run("warploom", "cancel", name, "--server", *server, *speech, expect=3)
        expect("there is no job" in done.err, done.err)
        # The worker of team vision measures nothing for team speech; a worker without a team measures for both.
        waits = scratch.start(*tune, *speech, name="waits")
        until(lambda: listed(scratch, "jobs", "--server", *server, *speech), 30, "its job is there")
        second = scratch.start("warploom-worker", "--server", *server, *shared, "--devices", "fake", name="fleet")
        expect(waits.wait(60) == 0, (scratch.root / "waits.log").read_text())
        measured = [record["measured_by"] for record in listed(scratch, "records", "--server", *server, *speech)]
        expect(measured and all(worker.startswith("fleet/") for worker in measured), measured)
        for child in (worker, second):
            child.kill()
        wrong_steps(scratch, server, vision)


if __name__ == "__main__":
    main()
