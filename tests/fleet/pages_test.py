#!/usr/bin/env python3
"""Runs the shell commands of README.md and of docs/how-to page by page, with other addresses, names of hosts and numbers of trials.
Coordinators and workers of a page run until the page ends or starts others. (documented_test.py is for deploy/README.md, and
tutorial_test.py for the tutorial. Snippets of C and Python are tested elsewhere.)"""

import re
import sys

import numpy as np
import onnx
from documented import in_blocks, shell, start
from graphs import onnx_model
from harness import BIN, SOURCE, Scratch, expect, has_sanitizer, skip, until
from onnx import TensorProto, helper

# The first words of commands in the code blocks of a page. A line with another first word is part of a file's text or of a program's output.
RUN = {"warploom", "warploomd", "warploom-worker", "warploom-train", "deploy/certificates.sh", "openssl", "sign", "touch", "echo", "tar"}
DEFINES = ("new=", "sign()")  # beginnings of lines that define a shell variable or function for later commands
EMPTY_HOME = {"README.md", "certificates.md", "fleet.md"}  # pages whose commands make the certificates, which therefore do not exist before
ROWS = {"team", "cert", "machine"}  # first words of rows of the file of --callers
NEEDS_A_GPU_COMPILER = "--target cuda:sm_90a"
BATCH = 'out = "bundles"\ntrials = 2\n[[model]]\nfile = "model.onnx"\ntargets = ["cpu"]\n'
SHOWN = "--tls-ca ca.pem --tls-cert {0}.pem --tls-key {0}.key"


class Page:
    """A page, and what its commands assume to exist: a model, certificates, a coordinator with records of the model's kernels."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.socket, self.address = scratch.path("s"), None
        self.coordinator, self.started, self.ran = None, 0, []
        self.variables = ""

    def prepare(self, tuned):
        write_model(self.scratch.root / "model.onnx")
        np.save(self.scratch.root / "x.npy", np.ones((4, 8), np.float32))
        (self.scratch.root / "nightly.toml").write_text(BATCH)
        (self.scratch.root / "callers.txt").touch()
        for name, role in [("laptop", "cache")] + [("ci", "client")] * tuned:
            shell(self.scratch, f"warploomd token {name} --callers callers.txt --role {role} > {name}.token")
        if not tuned:
            return
        for role, *names in (("coordinator", "localhost", "127.0.0.1"), ("worker", "node1"), ("client", "alice")):
            shell(self.scratch, f"deploy/certificates.sh . {role} {' '.join(names)}")
        self.run("warploomd --store kernels.db --listen 0.0.0.0:7411,unix:/tmp/warploom.sock --callers callers.txt --backups backups --trust-domain warploom " + SHOWN.format("coordinator"))
        self.run("warploom-worker --server coordinator.lab:7411 --devices cpu " + SHOWN.format("node1"))
        self.run("warploom tune model.onnx --server coordinator.lab:7411 --out tuned " + SHOWN.format("alice"))
        shell(self.scratch, f"warploom signer --server unix:{self.socket} > signers")
        self.ran.clear()

    def here(self, command):
        """Returns a command with this test's names and addresses instead of the page's."""
        socket = self.scratch.path("proxy") if "--upstream" in command else self.socket
        command = command.replace("/tmp/warploom.sock", socket)
        command = re.sub(r"(0\.0\.0\.0|127\.0\.0\.1):7411(?=,)", "localhost:0", command)
        command = re.sub(r"(coordinator\.lab|127\.0\.0\.1):7411", self.address or "localhost:1", command)
        command = command.replace("DNS:coordinator.lab", "DNS:localhost").replace("tls coordinator coordinator.lab", "tls coordinator localhost 127.0.0.1")
        backups = sorted((self.scratch.root / "backups").glob("*.db"))
        command = re.sub(r"backups/kernels-\S+\.db", str(backups[-1]) if backups else "no-backup", command)
        if command.startswith("warploom tune"):
            command += " --trials 2"
        return command

    def end_coordinator(self):
        if self.coordinator is not None:
            self.coordinator.process.terminate()
            self.coordinator.wait(30)
            self.coordinator = None

    def serve(self, command):
        """Starts a coordinator in place of the previous one, or a proxy beside it."""
        self.started += 1
        name = f"coordinator{self.started}"
        if "--upstream" not in command:
            self.end_coordinator()
        child = start(self.scratch, self.here(command), name)
        addresses = self.scratch.logged(name, r"listening on (\S+)", f"{command} listens")
        if "--upstream" not in command:
            self.coordinator = child
            self.address = addresses.split(",")[0]

    def run(self, command):
        self.ran.append(command)
        words = command.split()
        if words[0].startswith(DEFINES):
            self.variables += command + "\n"
        elif words[0] in ROWS:
            with open(self.scratch.root / "callers.txt", "a") as callers:
                callers.write(command + "\n")
        elif words[0] == "warploomd" and "--listen" in words:
            self.serve(command)
        elif words[0] == "warploom-worker" and "--check" not in words:
            self.started += 1
            start(self.scratch, self.here(command), f"worker{self.started}")
        else:
            if "--restore" in words or words[0] == "warploom-train":
                self.end_coordinator()
            shell(self.scratch, self.variables + self.here(command))
            self.after(words)

    def after(self, words):
        """Waits until a command has taken effect."""
        # A coordinator reads the callers file only at intervals, so a new token is unknown for some seconds.
        if words[:2] == ["warploomd", "token"] and self.coordinator is not None:
            jobs = ["warploom", "jobs", "--server", self.address, "--tls-ca", "ca.pem", "--token-file", words[-1]]
            until(lambda: self.scratch.run(*jobs, expect=None).code == 0, 30, f"{words[-1]} is known")


def write_model(path):
    """Writes a model of two layers side by side, since `warploom-train` learns from two groups of a kind at least."""
    nodes, shapes = [], {}
    weights = {"w": np.eye(8, dtype=np.float32), "v": np.eye(8, 16, dtype=np.float32)}
    for weight, result in ("w", "y"), ("v", "z"):
        nodes += [helper.make_node("MatMul", ["x", weight], [f"p{weight}"]), helper.make_node("Relu", [f"p{weight}"], [result])]
        shapes[result] = (result, TensorProto.FLOAT, [4, weights[weight].shape[1]])
    onnx.save(onnx_model(nodes, [("x", TensorProto.FLOAT, [4, 8])], list(shapes.values()), weights), path)


def commands_of(path):
    for command in in_blocks(path.read_text()):
        first = command.split()[0]
        is_row = first in ROWS and command.split()[1] != "="
        if first in RUN or is_row or first.startswith(DEFINES):
            yield command


def left_out(scratch, command):
    """Returns the reason why a command cannot run on this machine, or None."""
    if NEEDS_A_GPU_COMPILER in command:
        rows = scratch.run("warploom", "targets", "--json", "-").json()["targets"]
        return None if next(row for row in rows if row["name"] == "cuda:sm_90a")["compile"] else "no NVRTC"
    return None


def main(*names):
    if has_sanitizer(BIN / "warploom"):
        skip("the pages are the same under a sanitizer")
    with Scratch() as scratch:
        if "bubblewrap, with" not in scratch.run("warploom-worker", "--check", expect=None).out:
            skip("workers have no sandbox here, and the pages do not say --sandbox none")
    pages = [SOURCE / "README.md", *sorted((SOURCE / "docs/how-to").glob("*.md"))]
    count = 0
    for path in pages:
        if names and path.name not in names:
            continue
        with Scratch() as scratch:
            page = Page(scratch)
            page.prepare(tuned=path.name not in EMPTY_HOME)
            for command in commands_of(path):
                why = left_out(scratch, command)
                if why:
                    print(f"{path.name}: left out, {why}: {command}")
                else:
                    page.run(command)
            count += len(page.ran)
            print(f"{path.name}: {len(page.ran)} commands", flush=True)
    expect(names or count >= 70, f"{count} commands ran")


if __name__ == "__main__":
    main(*sys.argv[1:])
