"""A chain of three coordinators, each of which is the upstream of the next: a site, a team and a laptop. Used by tests of this folder and
of tests/cluster."""

import json
import os

from harness import digest_of, expect, rows_in, until

NAMES = ("site", "team", "laptop")
GRAPH = """graph {{
  %0 = input "x" : f32[{rows},24] normal(0,1)
  %1 = exp %0 : f32[{rows},24]
  output "y" %1
}}
"""


class Chain:
    """The chain of coordinators. Each offers records to its upstream with a token of the role cache, and knows the signing keys of all."""

    def __init__(self, scratch, check_minutes=10):
        self.scratch, self.check_minutes, self.starts, self.running = scratch, check_minutes, 0, {}
        (scratch.root / "signers").write_text("")
        for name in NAMES:
            self.start(name, alone=True)
            key = scratch.run("warploom", "signer", "--server", self.address(name)).out
            with open(scratch.path("signers"), "a") as file:
                file.write(key)
            self.kill(name)
        for below in NAMES[1:]:
            above = NAMES[NAMES.index(below) - 1]
            scratch.token(below, "cache", callers=f"{above}.callers")
            os.chmod(scratch.path(f"{above}.callers"), 0o600)
        for name in NAMES:
            # The workers of a test are on one machine. These rows of the callers file make the coordinator count them as two machines.
            with open(scratch.path(f"{name}.callers"), "a") as file:
                file.write(f"machine box0 {name}0\nmachine box1 {name}1\n")
            os.chmod(scratch.path(f"{name}.callers"), 0o600)
            for worker in (f"{name}0", f"{name}1"):
                scratch.token(worker, "worker", callers=f"{name}.callers")
            self.start(name)

    def address(self, name):
        return f"unix:{self.scratch.path(name)}"

    def store(self, name):
        return self.scratch.path(f"{name}.db")

    def start(self, name, alone=False):
        self.starts += 1
        options = []
        if not alone:
            options = ["--signers", "signers", "--http", "127.0.0.1:0"]
            options += ["--callers", f"{name}.callers"]
            if name != NAMES[0]:
                above = NAMES[NAMES.index(name) - 1]
                options += ["--upstream", self.address(above), "--upstream-token-file", f"{name}.token"]
                options += ["--offer", "confirmed", "--upstream-check-minutes", self.check_minutes]
        log = f"{name}.{self.starts}"
        self.running[name] = (self.scratch.serve(self.scratch.path(name), *options, store=self.store(name), name=log), log)

    def kill(self, name):
        """Kills a coordinator with SIGKILL."""
        child, _ = self.running.pop(name)
        child.kill()

    def log(self, name):
        return (self.scratch.root / f"{self.running[name][1]}.log").read_text()

    def metrics_of(self, name):
        where = self.scratch.logged(self.running[name][1], r"metrics on (\S+)", "it serves metrics")
        return f"http://{where}/"

    def graph(self, rows):
        """Writes a graph and returns its file name. Graphs with different numbers of rows have no kernel in common."""
        file = self.scratch.root / f"{rows}.graph"
        file.write_text(GRAPH.format(rows=rows))
        return file.name

    def workers(self, name, count=2):
        """Starts two workers, or `count`, so that one confirms the kernels of the other. Returns them once they have registered."""
        made = [
            self.scratch.start("warploom-worker", "--server", self.address(name), "--devices", "fake", "--token-file", f"{name}{i}.token", "--name", "w", name=f"{name}.worker{i}")
            for i in range(count)
        ]
        until(lambda: len(rows_in(self.store(name), "SELECT name FROM workers")) >= count, 60, "the workers are there")
        return made

    def tune(self, name, rows):
        self.scratch.run("warploom", "tune", self.graph(rows), "--server", self.address(name), "--trials", 2)

    def get(self, name, rows):
        """Fetches the kernels of a graph. Returns the files of the bundle (name -> digest) and ""; if the kernels are missing, None and the
        message."""
        out = f"out.{name}.{rows}"
        how = ["--server", self.address(name), "--signers", "signers", "--out", out]
        done = self.scratch.run("warploom", "get", self.graph(rows), *how, expect=None)
        if done.code == 0:
            return digest_of(self.scratch.root / out), ""
        expect(done.code == 3, f"get ended with {done.code}: {done.err}")
        return None, done.err

    def get_record(self, name, key):
        """Returns the record of a key as JSON, and ""; if there is no record, None and the message."""
        done = self.scratch.run("warploom", "get", key, "--server", self.address(name), "--json", "-", "--signers", "signers", expect=None)
        return (json.loads(done.out), "") if done.code == 0 else (None, done.err)

    def messages(self, name):
        """Returns a dict of all records that are served: digest -> bytes of the record with its signature."""
        query = "SELECT hex(r.digest), p.bytes FROM records r JOIN payloads p ON p.record = r.id WHERE r.blessed = 1"
        return dict(rows_in(self.store(name), query))

    def keys(self, name):
        listed = self.scratch.run("warploom", "records", "--server", self.address(name), "--json", "-").json()["records"]
        return {record["key"]: record["digest"] for record in listed}


def read_through(chain, rows):
    """Kernels that were tuned at the site are fetched unchanged through the laptop, and the stores on the way keep them."""
    for number in rows:
        chain.tune("site", number)
    for number in rows:
        there, _ = chain.get("site", number)
        here, said = chain.get("laptop", number)
        expect(here == there and here, f"the laptop has another bundle than the site: {said}")
    for key in chain.keys("site"):
        expect(chain.get_record("laptop", key)[0] == chain.get_record("site", key)[0], f"record {key}")
    for name in NAMES[1:]:
        expect(chain.messages(name) == chain.messages("site"), f"records of {name} have other bytes than those of the site")


def killed_in_traffic(chain, victim, known, fresh):
    """Kills a coordinator while clients of the laptop fetch old and new kernels. The laptop serves the kernels that it has and gives the
    reason why it lacks the others. Once the killed coordinator runs again, it serves all of them without further commands."""
    for number in fresh:
        chain.tune("site", number)
    wanted = {number: chain.get("site", number)[0] for number in fresh}
    half = len(fresh) // 2
    for number in fresh[:half]:
        expect(chain.get("laptop", number)[0] == wanted[number], "before")
    chain.kill(victim)
    for number in (*known, *fresh[:half]):
        here, said = chain.get("laptop", number)
        expect(here, f"without {victim} the laptop does not serve what it has: {said}")
    for number in fresh[half:]:
        here, said = chain.get("laptop", number)
        expect(here is None and "cannot be reached" in said and "the upstream" in said, f"without {victim}: {said}")
    below = chain.log(NAMES[NAMES.index(victim) + 1])
    expect(below.count("cannot be reached, what is here is served without it") >= 1, below)
    chain.start(victim)
    for number in fresh:
        until(lambda: chain.get("laptop", number)[0] == wanted[number], 60, f"the laptop has kernel {number} after {victim} is back")


def tuned_below(chain, rows):
    """Kernels that two workers of the laptop agree on arrive at the site once, although the team's coordinator is killed in between."""
    for number in rows:
        chain.tune("laptop", number)
    chain.kill("team")
    chain.start("team")
    made = chain.keys("laptop").items()
    until(lambda: made <= chain.keys("site").items(), 90, "what was made below is at the site")
    for number in rows:
        expect(chain.get("site", number)[0] == chain.get("laptop", number)[0], f"graph {number} at the site")
    doubled = rows_in(chain.store("site"), "SELECT hex(key) FROM records GROUP BY key, environment HAVING count(*) > 1")
    expect(not doubled, f"the site has two records of a key: {doubled}")
