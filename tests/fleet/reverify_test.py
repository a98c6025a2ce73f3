#!/usr/bin/env python3
"""After a change of the compiler, the kernels of the store are verified and timed again: automatically, even if the coordinator is killed
meanwhile, and by an operator's command. A kernel that the new compiler does not compile is no longer served."""

import json
import os
import re
import shutil
import urllib.error
import urllib.request

import graphs
from documented import documented, shell
from harness import Scratch, expect, rows_in, until


def compiler(scratch, version, refuses=""):
    """Returns a PATH whose g++ reports the version `version`, and fails on sources that contain `refuses`."""
    folder = scratch.root / f"gcc-{version}"
    folder.mkdir()
    refusal = f'grep -q "{refuses}" *.cpp 2> /dev/null && {{ echo "error: internal compiler error" >&2; exit 1; }}' if refuses else ""
    (folder / "g++").write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && {{ echo "g++ (test) {version}"; exit 0; }}\n'
        f"{refusal}\n"
        f'exec {os.path.realpath(shutil.which("g++"))} "$@"\n'
    )
    (folder / "g++").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


class Fleet:
    def __init__(self, scratch):
        self.scratch, self.store, self.server = scratch, scratch.path("a.db"), f"unix:{scratch.path('s')}"
        self.path = scratch.environment["PATH"]
        self.count = 0

    def coordinator(self, *options):
        self.count += 1
        return self.scratch.serve(self.scratch.path("s"), *options, store=self.store, name=f"coordinator{self.count}")

    def worker(self, name, path=None):
        self.scratch.environment["PATH"] = path or self.path
        child = self.scratch.start("warploom-worker", "--server", self.server, "--name", name, name=name)
        self.scratch.environment["PATH"] = self.path
        return child

    def call(self, command, *arguments, **options):
        return self.scratch.run("warploom", command, *arguments, "--server", self.server, **options)

    def reverify(self, *arguments):
        return self.call("reverify", *arguments, "--json", "-").json()


def asked(address):
    """Returns the HTTP status and the JSON that an address answers."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def records_of(fleet):
    return fleet.call("records", "--json", "-").json()["records"]


def main():
    with Scratch() as scratch:
        fleet = Fleet(scratch)
        model = scratch.root / "softmax.graph"
        model.write_text(graphs.SOFTMAX)
        daemon = fleet.coordinator()
        old = fleet.worker("old")
        first = fleet.call("tune", model, "--trials", 8, "--json", "-").json()
        winners = records_of(fleet)
        old.kill()

        # A worker with a newer compiler registers. The coordinator is killed during the verification.
        before = fleet.scratch.run("warploom", "reverify", "--status", "--server", fleet.server)
        expect("none was" in before.out, before.out)
        newer = fleet.worker("newer", compiler(scratch, "77.0"))
        until(lambda: rows_in(fleet.store, "SELECT 1 FROM reverified"), 60, "the winners are found")
        daemon.kill()
        daemon = fleet.coordinator()
        told = fleet.reverify("--watch")
        expect(told["counts"]["kept"] + told["counts"]["moved"] == len(winners), told)
        expect(told["counts"]["lost"] == 0 and told["counts"]["waiting"] == 0, told)
        for row in told["records"]:
            expect("77.0" in row["environment"] and "77.0" not in row["environment_before"] and row["ns"] > 0, row)
        # The answer comes from the store, for the new compiler; nothing was searched.
        again = fleet.call("get", model, "--json", "-").json()
        expect("77.0" in again["environment"]["compiler"], again["environment"])
        # The kernels were timed again, so another cover, with some of the same kernels, may be the fastest one now.
        expect({group["key"] for group in again["groups"]} <= {row["key"] for row in winners}, again)
        expect(rows_in(fleet.store, "SELECT count(*) FROM trials t JOIN searches s ON s.id = t.search_id WHERE s.environment LIKE '%77.0%' AND t.phase = 0") == [(0,)], "a search")
        table = fleet.call("reverify", "--status").out
        expect(re.search(r"(kept|moved) +[0-9a-f]{12} ", table) and "0 lost" in table, table)
        # The verification was a job, which is listed and can be watched.
        name = told["records"][0]["job"]
        jobs = {job["name"]: job for job in fleet.call("jobs", "--json", "-").json()["jobs"]}
        expect(jobs[name]["state"] == "succeeded" and jobs[name]["label"].startswith(f"reverify: {len(winners)} kernels of gcc="), jobs)
        watched = fleet.call("watch", name, "--json", "-").json()
        expect({group["key"] for group in watched["groups"]} == {row["key"] for row in winners}, watched)
        expect(all(group["source"] == "transferred" for group in watched["groups"]), watched)
        print("kept", told["counts"], flush=True)

        # The next compiler does not compile one kernel, which is lost; the other kernels are kept. With --no-reverify, no verification
        # begins automatically.
        newer.kill()
        daemon.kill()
        daemon = fleet.coordinator("--no-reverify", "--http", "127.0.0.1:0")
        address = scratch.logged(f"coordinator{fleet.count}", r"metrics on (\S+)", "the address of the pages")
        expect(asked(f"http://{address}/api/{name}")[0] == 200, "the page of a job that verified winners")
        expect(len(asked(f"http://{address}/api/{name}/kernels")[1]["kernels"]) == len(winners), "its kernels")
        code, answer = asked(f"http://{address}/api/{name}/graph")
        expect(code == 404 and "this job has no graph" in answer["error"], answer)
        key = first["groups"][0]["key"]
        record = fleet.call("get", key, "--json", "-").json()
        fleet.call("get", key, "--out", "one")
        entry = next((scratch.root / "one").glob("*.cpp")).stem
        broken = fleet.worker("broken", compiler(scratch, "78.0", refuses=f"void {entry}"))
        until(lambda: len(fleet.call("workers", "--json", "-").json()["workers"]) > 0, 60, "the worker")
        expect(not [row for row in fleet.reverify("--status")["records"] if "78.0" in row["environment"]], "--no-reverify")
        told = fleet.reverify("--watch")
        rows = [row for row in told["records"] if "78.0" in row["environment"]]
        expect(len(rows) == len(winners), told)
        lost = [row for row in rows if row["outcome"] == "lost"]
        expect([row["key"] for row in lost] == [key], lost)
        expect("compile_error" in lost[0]["message"] and lost[0]["plan"] == "", lost)
        expect(lost[0]["plan_before"] == record["plan"], lost)
        expect(not rows_in(fleet.store, f"SELECT 1 FROM records r JOIN environments e ON e.id = r.environment WHERE e.name LIKE '%78.0%' AND lower(hex(r.key)) = '{key}'"), "served")
        said = fleet.call("reverify", "--status").out
        expect("1 lost" in said and "tune their models again" in said, said)
        # The verification has ended, so `reverify --watch` ends at once, and cancelling its job has no effect.
        said = shell(scratch, documented("warploom reverify --watch", {"unix:/run/warploom/warploom.sock": fleet.server})).stdout
        expect("1 lost" in said, said)
        shell(scratch, documented("warploom cancel JOB", {"JOB": f"{name} --server {fleet.server}"}))
        refused = scratch.run("warploom", "reverify", expect=1)
        expect("--server" in refused.err, refused.err)
        broken.kill()
        daemon.kill()
        print("lost", flush=True)


if __name__ == "__main__":
    main()
