#!/usr/bin/env python3
"""An older copy of a store replaces it, as if an attacker between coordinator and client served old records. A client with --signers
refuses every record of which it has seen a later generation, or of which the signer has said that it is no longer valid; it accepts
others."""

import os
import shutil

import graphs
from harness import Scratch, expect

ADDRESS = ["--server", "unix:socket"]


def serve(scratch):
    return scratch.serve("socket", store="store.db")


def stop(child):
    child.process.terminate()
    expect(child.wait(60) == 0, "the coordinator ends")


def tune(scratch, name, *options):
    """Returns the key of the only group of a graph."""
    done = scratch.run("warploom", "tune", f"{name}.graph", *ADDRESS, "--trials", 2, "--json", "-", *options)
    (group,) = done.json()["groups"]
    return group["key"]


def move(scratch, source, target):
    for suffix in (".db", ".db.objects"):
        here, there = scratch.root / (source + suffix), scratch.root / (target + suffix)
        if there.is_dir():
            shutil.rmtree(there)
        if here.is_dir():
            shutil.copytree(here, there)
        else:
            shutil.copy(here, there)


def get(scratch, key, code=0, says="", signed=True, cache=None):
    before = scratch.environment["XDG_CACHE_HOME"]
    scratch.environment["XDG_CACHE_HOME"] = cache or before
    done = scratch.run("warploom", "get", key, *ADDRESS, *(["--signers", "signers"] if signed else []), expect=code)
    scratch.environment["XDG_CACHE_HOME"] = before
    expect(says in done.err, done.err)


def main():
    with Scratch() as scratch:
        # Each graph has one op, so that no cover can cut it into several groups.
        for name, op in (("one", "exp"), ("two", "tanh"), ("three", "neg")):
            (scratch.root / f"{name}.graph").write_text(graphs.EXP.replace("exp", op))
        coordinator = serve(scratch)
        worker = scratch.start("warploom-worker", *ADDRESS, "--name", "w", name="worker")
        one, two, three = (tune(scratch, name) for name in ("one", "two", "three"))
        line = scratch.run("warploom", "signer", *ADDRESS).out
        (scratch.root / "signers").write_text(line)
        for key in (one, two, three):
            get(scratch, key)
        stop(coordinator)
        move(scratch, "store", "yesterday")

        coordinator = serve(scratch)
        expect(tune(scratch, "one", "--retune") == one, "it is the same kernel that is searched again")
        scratch.run("warploom", "invalidate", two, *ADDRESS)
        get(scratch, two, code=3)
        get(scratch, one)  # the reply to this call also says that the record of `two` is no longer valid
        stop(coordinator)

        move(scratch, "store", "today")
        move(scratch, "yesterday", "store")
        coordinator = serve(scratch)
        get(scratch, one, code=2, says="this user has seen a later one")
        get(scratch, two, code=2, says="its signer has said that none is right below")
        get(scratch, three)
        for key in (one, two):
            get(scratch, key, signed=False)
            # The client of a user with an empty cache does not know the later generations of records, so it accepts older records.
            get(scratch, key, cache=scratch.path("of-another-user"))
        stop(coordinator)

        move(scratch, "today", "store")
        coordinator = serve(scratch)
        get(scratch, one)
        get(scratch, two, code=3)
        stop(coordinator)
        worker.kill()
        # A row of the file of signers may limit for how many days a coordinator's statement about generations counts.
        (scratch.root / "signers").write_text(line.strip() + " 0d\n")
        coordinator = serve(scratch)
        get(scratch, one, code=2, says="line 1: expected at its end for how many days")
        (scratch.root / "signers").write_text(line.strip() + " 365d\n")
        get(scratch, one)
        os.remove(scratch.path("cache/warploom/generations"))
        # A folder in place of the file `generations` keeps the client from writing the file. The client continues nevertheless.
        os.mkdir(scratch.path("cache/warploom/generations"))
        get(scratch, one)


if __name__ == "__main__":
    main()
