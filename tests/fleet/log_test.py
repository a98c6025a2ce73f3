#!/usr/bin/env python3
"""With --log-format json every line of a log is a JSON object, whatever characters it contains. This includes audit lines and the reason
why a program ends."""

import datetime
import json
import re

import graphs
from harness import BIN, Scratch, expect

JSON = ["--log-format", "json"]
SERVER = ["--server", "unix:s"]


def lines_of(scratch, name):
    """Returns the entries of a log, without the lines that a program prints for scripts to read."""
    out = []
    for line in (scratch.root / f"{name}.log").read_text().splitlines():
        if re.match(r"(listening|metrics) on ", line):
            continue
        entry = json.loads(line)
        expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", entry["ts"]), line)
        datetime.datetime.fromisoformat(entry["ts"].replace("Z", "+00:00"))
        expect(entry["level"] in ("debug", "info", "warning", "error", "critical") and entry["message"], line)
        out.append(entry)
    return out


def lines_of_a_fleet(scratch):
    hostile = 'w" \\ {"level":"error"}'
    daemon = scratch.start("warploomd", "--store", "a.db", "--listen", "unix:s,127.0.0.1:0", *JSON, "--verbose", name="coordinator")
    port = scratch.logged("coordinator", r"listening on unix:s,127\.0\.0\.1:(\d+)", "it listens")
    worker = scratch.start("warploom-worker", *SERVER, "--devices", "fake", "--name", hostile, *JSON, name="worker")
    (scratch.root / "g.graph").write_text(graphs.SOFTMAX)
    scratch.run("warploom", "tune", "g.graph", *SERVER, "--trials", 4)
    scratch.run("warploom", "drain", *SERVER)
    scratch.run("warploom", "drain", "--server", f"127.0.0.1:{port}", expect=2)
    for child in (worker, daemon):
        child.process.terminate()
        expect(child.wait(30) == 0, "it ends")
    log = lines_of(scratch, "coordinator")
    expect({entry["program"] for entry in log} == {"warploomd"}, log)
    audits = [entry["audit"] for entry in log if entry["message"] == "audit"]
    expect([audit["outcome"] for audit in audits if audit["call"] == "Drain"] == ["allowed", "refused"], audits)
    expect(any(entry["message"].startswith("serving on unix:s") for entry in log), log)
    registered = [entry for entry in lines_of(scratch, "worker") if entry["message"] == "registered"]
    expect(len(registered) == 1 and registered[0]["program"] == "warploom-worker", registered)
    expect(registered[0]["worker"].endswith(hostile), registered)


def nobody_answers(scratch):
    """A worker that starts before its coordinator logs once that it waits for the coordinator."""
    scratch.start("warploom-worker", "--server", "unix:later", "--devices", "fake", *JSON, name="early")
    scratch.logged("early", "(no coordinator answers at unix:later)", "it says that nobody answers")
    scratch.start("warploomd", "--store", "later.db", "--listen", "unix:later", name="later")
    scratch.logged("early", '("message":"registered")', "it finds the coordinator")
    waited = [entry for entry in lines_of(scratch, "early") if "no coordinator answers" in entry["message"]]
    expect(len(waited) == 1 and waited[0]["level"] == "warning" and waited[0]["message"].endswith("; trying again"), waited)


def asked_too_early(scratch):
    """A client that starts before its coordinator, as in a script, waits for the coordinator for some seconds."""

    def answered(number):
        server = ["unix:" + scratch.path(f"early{number}")]
        command = ["/usr/bin/env", "GRPC_VERBOSITY=debug", "GRPC_TRACE=connectivity_state", BIN / "warploom", "jobs", "--server", *server]
        client = scratch.start(*command, name=f"client{number}")
        scratch.logged(f"client{number}", "(TRANSIENT_FAILURE)", "the client has found nobody")
        coordinator = scratch.start("warploomd", "--store", "early.db", "--listen", *server, name=f"coordinator{number}")
        code = client.wait(60)
        coordinator.kill()
        return code == 0

    # On a busy machine the coordinator may start so late that the client has given up. So several clients are tried, and one must succeed.
    expect(any(answered(number) for number in range(5)), "no client found a coordinator that was started after it")


def ends_and_mistakes(scratch):
    def only_line(done):
        lines = done.err.splitlines()
        expect(len(lines) == 1, done.err)
        return json.loads(lines[0])

    end = only_line(scratch.run("warploomd", "--store", "b.db", "--listen", "0.0.0.0:0", *JSON, expect=1))
    expect(end["level"] == "error" and "0.0.0.0" in end["message"], end)
    end = only_line(scratch.run("warploom-worker", *SERVER, "--runner", "none", *JSON, expect=1))
    expect(end["level"] == "error" and "--runner" in end["message"], end)
    (scratch.root / "c.toml").write_text('store = "c.db"\nlisten = "0.0.0.0:0"\nlog_format = "json"\n')
    expect("0.0.0.0" in only_line(scratch.run("warploomd", "--config", "c.toml", expect=1))["message"], "it is a key of the file")
    wrong = ["--log-format", "xml"]
    for command in (["warploomd", "--store", "x", "--listen", "unix:t"], ["warploom-worker", *SERVER], ["warploom"]):
        said = scratch.run(command[0], *wrong, *command[1:], *(["targets"] if command == ["warploom"] else []), expect=1).err
        expect("xml" in said and "json" in said, said)


def main():
    with Scratch() as scratch:
        lines_of_a_fleet(scratch)
        nobody_answers(scratch)
        asked_too_early(scratch)
        ends_and_mistakes(scratch)
        print("ok")


if __name__ == "__main__":
    main()
