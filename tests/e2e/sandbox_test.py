#!/usr/bin/env python3
"""On a machine without a sandbox, a worker refuses to start unless it has --sandbox none. The list of workers, the report and the record
name the sandbox that was used. Embedded mode continues without a sandbox, and its report says so."""

import os
import pathlib
import shutil

import graphs
from harness import Scratch, expect, skip, until


def path_without(scratch, program):
    """Returns a PATH with a single folder, which has every program of this machine's PATH except one."""
    folder = scratch.root / f"no-{program}"
    folder.mkdir()
    for part in os.environ["PATH"].split(":"):
        for found in pathlib.Path(part).glob("*") if part else ():
            link = folder / found.name
            if found.name != program and not link.is_symlink():
                link.symlink_to(found.resolve())
    return str(folder)


def sandbox_of(report):
    return report["environment"]["host"]["sandbox"]


def main():
    with Scratch() as scratch:
        model = scratch.root / "scalar.graph"
        model.write_text(graphs.SCALAR)
        boxed = scratch.environment
        bare = dict(boxed, PATH=path_without(scratch, "bwrap"))
        nowhere = ("warploom-worker", "--server", "unix:" + scratch.path("none"), "--exit-when-idle", 0)

        works = scratch.run(*nowhere, expect=None)
        if "no sandbox" in works.err:
            expect(works.code == 1 and "--sandbox none" in works.err, works.err)
            skip(works.err)
        wrong = scratch.run(*nowhere, "--sandbox", "chroot", expect=1)
        expect("none" in wrong.err, wrong.err)
        scratch.environment = bare
        refused = scratch.run(*nowhere, expect=1)
        for words in ("bwrap", "not on PATH", "install bubblewrap", "--sandbox none"):
            expect(words in refused.err, f"{words}: {refused.err}")

        # A script called g++ that starts the compiler by a link in a folder that is not visible in the sandbox.
        door = scratch.root / "door"
        door.mkdir()
        (scratch.root / "g++").symlink_to(shutil.which("g++"))
        (door / "g++").write_text(f'#!/bin/sh\nexec {scratch.root}/g++ "$@"\n')
        (door / "g++").chmod(0o755)
        scratch.environment = dict(boxed, PATH=f"{door}:{boxed['PATH']}")
        refused = scratch.run(*nowhere, expect=1)
        for words in ("gcc does not compile in the sandbox", "not found", "/usr", "--sandbox none"):
            expect(words in refused.err, f"{words}: {refused.err}")

        for environment, options, sandbox in ((boxed, [], "bubblewrap"), (bare, ["--sandbox", "none"], "none")):
            scratch.environment = environment
            fleet(scratch, model, options, sandbox)
            report = scratch.run("warploom", "tune", model, "--trials", 2, "--store", scratch.path(f"{sandbox}.own.db"),
                                 "--json", "-").json()
            expect(sandbox_of(report) == sandbox, report["environment"])
            print("embedded", sandbox, flush=True)


def fleet(scratch, model, options, sandbox):
    socket = scratch.path(sandbox)
    server = "unix:" + socket
    daemon = scratch.serve(socket, store=socket + ".db")
    worker = scratch.start("warploom-worker", "--server", server, "--name", "one", *options)

    def workers():
        return scratch.run("warploom", "workers", "--server", server, "--json", "-").json()["workers"]

    until(workers, 60, "the worker")
    expect(workers()[0]["sandbox"] == sandbox, workers())
    table = scratch.run("warploom", "workers", "--server", server).out
    expect(sandbox in table, table)
    report = scratch.run("warploom", "tune", model, "--server", server, "--trials", 2, "--json", "-").json()
    expect(sandbox_of(report) == sandbox, report["environment"])
    key = report["groups"][0]["key"]
    record = scratch.run("warploom", "get", key, "--server", server, "--json", "-").json()
    expect(record["sandbox"] == sandbox, record)
    worker.kill()
    daemon.kill()
    print("fleet", sandbox, flush=True)


if __name__ == "__main__":
    main()
