#!/usr/bin/env python3
"""Backups of a coordinator during a search: a store that is restored from a backup is whole, and its job continues there. Old backups are
removed, but none of a store of another name. The test also covers pinning and invalidating records by command, and wrong configurations of
backups."""

import pathlib
import sqlite3

import graphs
from harness import WHOLE, Scratch, expect, listening, until


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.SOFTMAX_MATMUL)
        path, folder = scratch.path("s"), scratch.root / "backups"
        server = f"unix:{path}"
        (scratch.root / "coordinator.toml").write_text(
            f'store = "{scratch.path("a.db")}"\nlisten = "{server}"\nbackups = "{folder}"\nkeep_backups = 2\nobjects_gb = 5\n'
        )
        daemon = scratch.start("warploomd", "--config", "coordinator.toml", name="first")
        until(lambda: listening(path), 20, "the coordinator listens")
        worker = scratch.start("warploom-worker", "--server", server, "--devices", "cpu", name="worker")
        scratch.start("warploom", "tune", "g.graph", "--server", server, "--cover", "greedy", "--trials", 24 if WHOLE else 16, name="client")

        def job():
            jobs = scratch.run("warploom", "jobs", "--server", server, "--json", "-").json()["jobs"]
            return jobs[0] if jobs else {"trials_done": 0, "state": "none"}

        until(lambda: job()["trials_done"] > 4, 120, "trials are measured")
        made = []
        for _ in range(3):
            answer = scratch.run("warploom", "backup", "--server", server, "--json", "-").json()
            made.append(pathlib.Path(answer["file"]))
            expect(made[-1].stat().st_size == answer["bytes"] > 0, answer)
        expect(job()["state"] == "running", "the search was over before its backups were made")
        expect(sorted(folder.glob("*.db")) == made[1:], f"kept are {sorted(folder.iterdir())}, expected {made[1:]}")

        # The coordinator whose store was backed up and its worker are killed, as if their machine were lost.
        worker.kill()
        daemon.kill()
        half = folder / (made[0].name + ".unfinished")
        half.write_text("a coordinator was killed while it wrote this")
        refused = scratch.run("warploomd", "--store", scratch.path("b.db"), "--restore", scratch.path("none"), expect=2)
        expect("none" in refused.err and not pathlib.Path(scratch.path("b.db")).exists(), refused.err)
        scratch.run("warploomd", "--store", scratch.path("b.db"), "--restore", made[-1])
        with sqlite3.connect(f"file:{scratch.path('b.db')}?immutable=1", uri=True) as restored:
            expect(restored.execute("PRAGMA integrity_check").fetchone() == ("ok",), "the restored store is damaged")
        known = restored.execute("SELECT count(*) FROM trials").fetchone()[0]
        restored.close()
        expect(known > 4, f"only {known} trials were in the backup")
        scratch.start(
            "warploomd", "--store", scratch.path("b.db"), "--config", "coordinator.toml", "--backup-hours", "24", name="second"
        )
        until(lambda: listening(path), 20, "the restored coordinator listens")
        scratch.start("warploom-worker", "--server", server, "--devices", "cpu", name="worker2")
        until(lambda: job()["state"] == "succeeded", 200, "the job of the backup is done")
        kernel = scratch.run("warploom", "records", "--server", server, "--json", "-").json()["records"][0]
        scratch.run("warploom", "get", kernel["key"], "--server", server, "--out", scratch.path("kernel"))

        for name in (kernel["key"], kernel["digest"]):
            for command, pinned in (("pin", True), ("unpin", False)):
                scratch.run("warploom", command, name, "--server", server)
                records = scratch.run("warploom", "records", "--server", server, "--json", "-").json()["records"]
                expect([r["pinned"] for r in records if r["key"] == kernel["key"]] == [pinned], records)
        unknown = scratch.run("warploom", "pin", "0" * 64, "--server", server, expect=3)
        expect("no record" in unknown.err, unknown.err)
        scratch.run("warploom", "invalidate", kernel["key"], "--server", server)
        scratch.run("warploom", "get", kernel["key"], "--server", server, "--out", scratch.path("gone"), expect=3)

        # The restored store has another name. Its coordinator makes backups in the same folder, and removes none of the first store's
        # backups.
        until(lambda: list(folder.glob("b-*.db")), 60, "the backup that was due")
        expect(half.exists() and made[-1].exists(), sorted(folder.iterdir()))
        print(f"{known} trials in the backup; the job went on from there", flush=True)

    with Scratch() as scratch:
        wrong = {
            'backup_hours = "often"': "expected a number",
            "backup_hours = 0": "from 0.01 to",
            "keep = 3": "unknown key",
            'backups = "coordinator.toml"': "cannot be made",
            "backup_hours = 3": "need --backups",
        }
        for line, said in wrong.items():
            (scratch.root / "coordinator.toml").write_text(f'store = "a.db"\nlisten = "unix:{scratch.path("s")}"\n{line}\n')
            answer = scratch.run("warploomd", "--config", "coordinator.toml", expect=None, deadline=30)
            expect(answer.code in (1, 2) and said in answer.err, f"{line}: {answer.code} {answer.err}")
        print(f"{len(wrong)} wrong configurations were refused", flush=True)


if __name__ == "__main__":
    main()
