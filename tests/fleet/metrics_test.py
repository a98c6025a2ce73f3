#!/usr/bin/env python3
"""Metrics and health of a real coordinator over HTTP: the counts of a job, a bounded number of labels whatever callers send, readiness
while the coordinator is drained, HTTPS with its certificate, and the messages for wrong addresses."""

import json
import re
import ssl
import urllib.error
import urllib.request

import graphs
from documented import documented
from documented import start as start_command
from harness import Scratch, expect, shown, until


def ask(url, context=None):
    try:
        with urllib.request.urlopen(url, timeout=30, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def values(text):
    """Returns a dict: sample -> value. Fails on a metric without HELP or TYPE."""
    out = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        sample, value = line.rsplit(" ", 1)
        out[sample] = float(value)
        family = re.sub(r"_(bucket|sum|count)$", "", re.match(r"\w+", sample)[0])
        expect(f"# HELP {family} " in text and f"# TYPE {family} " in text, f"{family} has no HELP or TYPE")
    return out


def start(scratch, name, *options):
    scratch.start("warploomd", "--store", f"{name}.db", "--listen", f"unix:{name}.s", "--http", "127.0.0.1:0", *options, name=name)
    return scratch.logged(name, r"metrics on (\S+)", "it serves metrics")


def start_as_documented(scratch):
    """Starts a coordinator by the command of deploy/README.md, with another port and other names of files. Returns the address of its
    metrics."""
    changes = {"kernels.db": "a.db", "/tmp/warploom.sock": "a.s", "9411": "0"}
    start_command(scratch, documented("warploomd --store kernels.db --listen unix:/tmp/warploom.sock --http", changes), "a")
    return scratch.logged("a", r"metrics on (\S+)", "it serves metrics")


def counts(scratch):
    where = start_as_documented(scratch)
    server = ["--server", "unix:a.s"]
    before = values(ask(f"http://{where}/metrics")[1])
    expect(before["warploom_trials_total{outcome=\"correct\"}"] == 0, before)
    (scratch.root / "g.graph").write_text(graphs.SOFTMAX)
    tune = scratch.start("warploom", "tune", "g.graph", *server, "--trials", 8, name="tune")

    until(lambda: values(ask(f"http://{where}/metrics")[1])['warploom_jobs{state="queued"}'] == 1, 60, "a job waits")
    scratch.run("warploom", "drain", *server)
    worker = scratch.start("warploom-worker", *server, "--devices", "fake", "--name", "somebody")
    queue = re.compile(r'^warploom_queue_candidates\{target="cpu:\w+"\} [1-9]', re.M)
    until(lambda: queue.search(ask(f"http://{where}/metrics")[1]), 60, "candidates wait, since nothing is given out")
    scratch.run("warploom", "undrain", *server)
    expect(tune.wait(120) == 0, (scratch.root / "tune.log").read_text())
    scratch.run("warploom", "get", "ab" * 32, *server, expect=3)
    # A call is counted when it ends, which may be after its caller has received the answer. So the test waits for the count.
    miss = 'warploom_rpc_requests_total{code="NOT_FOUND",method="warploom.v1.KernelStore/GetKernel"}'
    until(lambda: miss in values(ask(f"http://{where}/metrics")[1]), 60, "the miss is counted")
    text = ask(f"http://{where}/metrics")[1]
    after = values(text)
    expect(after["warploom_trials_total{outcome=\"correct\"}"] >= 8 and after['warploom_workers{state="alive"}'] == 1, text)
    expect(after[miss] == 1, text)
    expect(after["warploom_store_commit_duration_seconds_count"] > 8 and after["warploom_store_database_bytes"] > 0, text)
    gone = ("warploom_queue_candidates", "warploom_jobs{")
    expect(not any(value for sample, value in after.items() if sample.startswith(gone)), text)
    looks_up_and_ends(scratch, server, where, after)
    for secret in ("somebody", "ab" * 32, "g.graph"):
        expect(secret not in text, f"{secret} is in the metrics")
    expect(ask(f"http://{where}/healthz") == (200, "alive\n") and ask(f"http://{where}/readyz") == (200, "ready\n"), "health")
    expect(ask(f"http://{where}/other")[0] == 404, "there is no other page")
    scratch.run("warploom", "drain", *server)
    code, said = ask(f"http://{where}/readyz")
    expect(code == 503 and "drained" in said, (code, said))
    worker.kill()
    return where


def looks_up_and_ends(scratch, server, where, after):
    """The metrics count hits and misses of jobs and fetches and the ways in which jobs ended, and have the times at which searches got
    their first and best kernels."""
    expect(after['warploom_jobs_ended_total{state="succeeded"}'] == 1 and after['warploom_jobs_ended_total{state="failed"}'] == 0, after)
    groups = after['warploom_job_groups_total{result="miss"}']
    expect(groups >= 1 and after['warploom_job_groups_total{result="hit"}'] == 0, after)
    for which in ("first", "best"):
        expect(after[f"warploom_search_{which}_kernel_seconds_count"] >= 1, after)
    sums = [after[f"warploom_search_{which}_kernel_seconds_sum"] for which in ("first", "best")]
    expect(0 < sums[0] <= sums[1], f"the best kernel came before the first: {sums}")
    expect(after['warploom_kernel_fetches_total{result="miss"}'] == 1, after)
    expect(after["warploom_store_objects_bytes"] > 0 and after['warploom_leases_lost_total{reason="expired"}'] == 0, after)
    key = json.loads(scratch.run("warploom", "records", *server, "--json", "-").out)["records"][0]["key"]
    for _ in range(2):  # the second answer comes from the cache of replies
        scratch.run("warploom", "get", key, *server)
    scratch.run("warploom", "tune", "g.graph", *server, "--trials", 8)
    later = values(ask(f"http://{where}/metrics")[1])
    expect(later['warploom_jobs_ended_total{state="succeeded"}'] == 2, later)
    expect(later['warploom_job_groups_total{result="hit"}'] >= 1 and later['warploom_job_groups_total{result="miss"}'] == groups, later)
    expect(later['warploom_kernel_fetches_total{result="hit"}'] >= 2, later)


def secure(scratch):
    scratch.certificates(["coordinator", "localhost", "127.0.0.1"], ["client", "c"])
    where = start(scratch, "b", *shown("coordinator"))
    trusting = ssl.create_default_context(cafile=scratch.path("tls/ca.pem"))
    expect(ask(f"https://{where}/healthz", trusting) == (200, "alive\n"), "health by HTTPS")
    try:
        ask(f"http://{where}/healthz")
    except OSError:
        return
    raise AssertionError("plain text was answered where there is a certificate")


def mistakes(scratch, taken):
    for address, code, says in (
        ("0.0.0.0:0", 1, "nothing goes to them in plain text"),
        ("localhost", 1, "--http: expected HOST:PORT"),
        (taken, 4, "in use by another process"),
    ):
        done = scratch.run("warploomd", "--store", "c.db", "--listen", "unix:c.s", "--http", address, expect=code)
        expect(says in done.err, done.err)


def main():
    with Scratch() as scratch:
        taken = counts(scratch)
        secure(scratch)
        mistakes(scratch, taken)
        print("ok")


if __name__ == "__main__":
    main()
