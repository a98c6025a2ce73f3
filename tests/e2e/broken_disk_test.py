#!/usr/bin/env python3
"""After a failed fsync the coordinator answers no more calls and ends, with a message that says why and what to do. The next coordinator
continues with what is stored on the disk."""

import os
import pathlib

import graphs
from harness import BIN, Scratch, expect, listening, until


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.SOFTMAX_MATMUL)
        path, failing = scratch.path("s"), pathlib.Path(scratch.path("failing"))
        serve = ("warploomd", "--store", scratch.path("a.db"), "--listen", f"unix:{path}")
        scratch.environment.update(LD_PRELOAD=str(BIN / "libfailing_fsync.so"), FAIL_FSYNC=str(failing))
        # By default, the address sanitizer ends a program if another library is loaded before the sanitizer's own. This option turns that
        # check off.
        scratch.environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        daemon = scratch.start(*serve, name="broken")
        del scratch.environment["LD_PRELOAD"]
        log = scratch.root / "broken.log"
        until(lambda: "listening on" in log.read_text(), 20, "the coordinator serves")
        submit = ("tune", "g.graph", "--server", f"unix:{path}", "--target", "cpu", "--out", scratch.path("bundle"))
        failing.touch()
        refused = scratch.run("warploom", *submit, deadline=60, expect=None)
        expect(refused.code != 0, "a job was taken that is not on the disk")
        code = daemon.wait(deadline=30)
        said = log.read_text()
        expect(code == 2, f"exit code {code}, expected 2:\n{said}")
        expect("check the disk" in said, f"nothing about the disk:\n{said}")
        again = scratch.start(*serve, name="again")
        until(lambda: listening(path), 20, "the next coordinator listens")
        jobs = scratch.run("warploom", "jobs", "--server", f"unix:{path}", "--json", "-").json()["jobs"]
        expect(again.process.poll() is None, "the next coordinator has ended")
        print(f"ended with {code} after a failed fsync; the next one has {len(jobs)} jobs")


if __name__ == "__main__":
    main()
