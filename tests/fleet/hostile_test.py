#!/usr/bin/env python3
"""Real workers with a compiler that puts its own code into every object, beside honest workers: without credentials, with certificates, and
below an upstream. The code makes a file if it runs in a client's process. Only a client with --trust-workers may run it."""

import os
import shutil

import graphs
from harness import Scratch, expect, listening, shown, skip, until

# Code that creates a file whose path is in an environment variable. Only the client's process has this variable, so the file shows that the
# code ran in the client.
MARK = r"""
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void mark_of_a_hostile_worker() {
  if (const char* place = std::getenv("VICTIM_OF_A_WORKER")) close(open(place, O_CREAT | O_WRONLY, 0644));
}
"""


def hostile_compiler(scratch):
    """Returns an environment with compilers that are the real ones, except that they include the code MARK in every source."""
    folder = scratch.root / "hostile"
    folder.mkdir()
    (folder / "mark.h").write_text(MARK)
    for name in ("g++", "clang++"):  # both are replaced, since the winning kernel may come from g++ or clang++
        real = shutil.which(name)
        if real is None:
            continue
        wrapper = folder / name
        wrapper.write_text(f'#!/bin/sh\ncase "$*" in *-shared*|*-c*) exec {real} -include {folder}/mark.h "$@" ;; esac\nexec {real} "$@"\n')
        wrapper.chmod(0o755)
    return {**scratch.environment, "PATH": f"{folder}:{os.environ['PATH']}"}


class Cell:
    """A coordinator with workers. `shown(NAME)` returns the options with which a caller authenticates."""

    def __init__(self, scratch, name, hostile, honest, options=(), listen=None, shown=lambda name: []):
        self.scratch, self.name, self.shown = scratch, name, shown
        scratch.start("warploomd", "--store", f"{name}.db", "--listen", f"{listen + ',' if listen else ''}unix:{name}.s", *options, name=name)
        until(lambda: listening(scratch.path(f"{name}.s")), 60, f"{name} listens")
        address = scratch.logged(name, r"listening on ([^,\s]+)", "it says where")
        self.address = address if listen else f"unix:{name}.s"
        for number in range(hostile):
            self.worker(f"hostile{number}", scratch.hostile)
        for number in range(honest):
            self.worker(f"honest{number}", scratch.environment)

    def worker(self, who, environment):
        before, self.scratch.environment = self.scratch.environment, environment
        # The worker runs without a sandbox, because its replaced compiler is not visible in a sandbox. A hostile worker may choose to do so.
        flags = ["--server", self.address, "--name", who, "--sandbox", "none", *self.shown(who)]
        self.scratch.start("warploom-worker", *flags, name=f"{self.name}-{who}")
        self.scratch.environment = before

    def load(self, graph, *options, command="tune", shown="alice"):
        """Tunes a graph, or gets its kernels, and runs the bundle. Returns whether the hostile code ran, and the client's output."""
        mark = self.scratch.path("mark")
        if os.path.exists(mark):
            os.remove(mark)
        out = self.scratch.path(f"{self.name}.out")
        shutil.rmtree(out, ignore_errors=True)
        asks = ["--trials", 2, "--budget", "60s"] if command == "tune" else []
        done = self.scratch.run("warploom", command, graph, "--server", self.address, *self.shown(shown), *asks, "--out", out, *options, expect=None)
        if os.path.exists(out):
            before, self.scratch.environment = self.scratch.environment, {**self.scratch.environment, "VICTIM_OF_A_WORKER": mark}
            self.scratch.run("warploom", "run", out)
            self.scratch.environment = before
        else:
            expect(done.code != 0, f"no bundle, and no error: {done.out}")
        return os.path.exists(mark), done.out + done.err


def nameless(scratch, honest):
    cell = Cell(scratch, f"nameless{honest}", hostile=2, honest=honest, listen="127.0.0.1:0")
    marked, said = cell.load("g.graph")
    expect(not marked, f"nameless workers: {said}")
    return cell


def without_a_builder(scratch):
    """Without --trust-workers the client compiles the kernels that it loads. With this flag it does not, which shows that the test notices
    hostile code."""
    cell = Cell(scratch, "trusting", hostile=2, honest=0, listen="127.0.0.1:0", options=["--no-build"])
    marked, said = cell.load("g.graph")
    expect(not marked, f"a client that compiles: {said}")
    marked, said = cell.load("g.graph", "--trust-workers")
    expect(marked and "--trust-workers" in said, f"a client that trusts workers: {said}")


def certificates(scratch, honest):
    options = ["--trust-domain", "warploom", *shown("coordinator")]
    cell = Cell(scratch, f"tls{honest}", hostile=2, honest=honest, options=options, listen="localhost:0", shown=shown)
    marked, said = cell.load("g.graph")
    expect(not marked, f"workers with certificates: {said}")


def below_an_upstream(scratch):
    """Two hostile workers serve a laptop, which offers all its records to a site. A client of the laptop and a client of the site use the
    kernels."""
    scratch.callers("")
    scratch.token("laptop", "cache", "--expires", "1d")
    # The laptop makes its signing key at its first start, after which the site can trust the key.
    first = scratch.serve("first.s", store="laptop.db", name="first")
    (scratch.root / "signers").write_text(scratch.run("warploom", "signer", "--server", "unix:first.s").out)
    first.process.terminate()
    first.wait(60)
    site = Cell(scratch, "site", hostile=0, honest=0, options=["--callers", "callers", "--signers", "signers"])
    upstream = ["--upstream", site.address, "--upstream-token-file", "laptop.token", "--offer", "all"]
    laptop = Cell(scratch, "laptop", hostile=2, honest=0, listen="127.0.0.1:0", options=upstream)
    marked, said = laptop.load("g.graph")
    expect(not marked, f"at the laptop: {said}")
    marked, said = site.load("g.graph", command="get")
    expect(not marked, f"at the site: {said}")


def main():
    if shutil.which("g++") is None or shutil.which("openssl") is None:
        skip("no g++ or openssl command")
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.EXP)
        scratch.hostile = hostile_compiler(scratch)
        workers = ["hostile0", "hostile1", "honest0", "honest1"]
        scratch.certificates(["coordinator", "localhost", "127.0.0.1"], ["client", "alice"], ["worker", *workers])
        without_a_builder(scratch)
        for honest in (0, 1):
            nameless(scratch, honest)
            certificates(scratch, honest)
        below_an_upstream(scratch)


if __name__ == "__main__":
    main()
