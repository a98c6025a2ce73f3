#!/usr/bin/env python3
"""A coordinator, a worker and a client on three machines, simulated by network namespaces. Their certificates are made by the commands of
docs/how-to/certificates.md with other names of hosts and files."""

import ctypes
import os
import re
import shutil
import subprocess

import graphs
from harness import SOURCE, Scratch, expect, shown, skip, until

CLONE_NEWNET = 0x40000000


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


class Machines:
    """Network namespaces: a hub, and machines that a virtual cable each connects to the hub. They are deleted at the end of the test."""

    def __init__(self, scratch, names):
        self.prefix = f"wl{os.getpid()}"
        for name in ("hub", *names):
            made, why = ip("netns", "add", self.named(name))
            if not made:
                skip(f"no network namespaces here: {why}")
            scratch.at_end.append(lambda name=name: ip("netns", "delete", self.named(name)))
            self.inside(name, "link", "set", "lo", "up")
        for number, name in enumerate(names, 1):
            ends = [f"{self.prefix}h{number}", f"{self.prefix}n{number}"]
            made, why = ip("link", "add", ends[0], "netns", self.named("hub"), "type", "veth", "peer", "name", ends[1], "netns", self.named(name))
            expect(made, why)
            for machine, end, last in (("hub", ends[0], 1), (name, ends[1], 2)):
                self.inside(machine, "addr", "add", f"10.77.{number}.{last}/24", "dev", end)
                self.inside(machine, "link", "set", end, "up")

    def named(self, name):
        return f"{self.prefix}{name}"

    def inside(self, name, *arguments):
        made, why = ip("-n", self.named(name), *arguments)
        expect(made, why)

    def on(self, name):
        """Returns the option of subprocess.Popen with which a process runs on the machine."""

        def enter():
            descriptor = os.open(f"/run/netns/{self.named(name)}", os.O_RDONLY)
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
                os._exit(126)
            os.close(descriptor)

        return {"preexec_fn": enter}


def recipe():
    """Returns the commands of docs/how-to/certificates.md that make a CA and certificates, with the machines' addresses added."""
    text = (SOURCE / "docs/how-to/certificates.md").read_text()
    found = re.search(r'^    new=".*?client/alice$', text, re.MULTILINE | re.DOTALL).group(0)
    expect("req -x509" in found and found.count("\n    sign ") == 3, found)
    return found.replace("DNS:coordinator.lab", "DNS:coordinator.lab,IP:10.77.1.1,IP:10.77.2.1")


def certificates(scratch):
    done = subprocess.run(["bash", "-ec", recipe()], cwd=scratch.root, capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)


def main():
    if shutil.which("openssl") is None or shutil.which("ip") is None or os.geteuid() != 0:
        skip("needs root, and the commands openssl and ip")
    with Scratch() as scratch:
        certificates(scratch)
        machines = Machines(scratch, ["worker", "client"])
        scratch.run("warploomd", "token", "ci", "--callers", "callers.txt", "--role", "client", "--expires", "30d")
        serve = ["warploomd", "--store", "kernels.db", "--listen", "0.0.0.0:0,unix:socket"]
        who = ["--callers", "callers.txt", "--trust-domain", "lab", *shown("coordinator", "")]
        scratch.start(*serve, *who, name="coordinator", **machines.on("hub"))
        log = scratch.root / "coordinator.log"
        port = until(lambda: re.search(r"listening on 0\.0\.0\.0:(\d+),", log.read_text()), 60, "the coordinator listens").group(1)
        measure = ["warploom-worker", "--server", f"10.77.1.1:{port}", "--devices", "fake"]
        scratch.start(*measure, *shown("gpu7", ""), name="worker", **machines.on("worker"))
        (scratch.root / "model.graph").write_text(graphs.EXP)
        server = ["--server", f"10.77.2.1:{port}"]
        tune = ["warploom", "tune", "model.graph", *server, "--trials", 2, "--out", "tuned"]
        tuned = scratch.run(*tune, *shown("alice", ""), **machines.on("client"))
        expect((scratch.root / "tuned").is_dir(), tuned.err)
        scratch.run("warploom", "drain", "--server", "unix:socket")
        plain = scratch.run("warploom", "jobs", *server, expect=2, **machines.on("client"))
        expect("nothing goes in plain text; say --tls-ca" in plain.err, plain.err)
        refused = scratch.run("warploom", "drain", *server, *shown("alice", ""), expect=2, **machines.on("client"))
        expect("Drain needs the role operator" in refused.err, refused.err)


if __name__ == "__main__":
    main()
