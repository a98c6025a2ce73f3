"""A batch on a fleet whose processes are all killed, as by a power cut, is compared with an undisturbed one. Times are a hash of the source
(`--devices fake`). With at_once = 1, candidates do not depend on the workers. With --jobs 1, they do not depend on the order in which
models submit jobs with common groups."""

from harness import bundles_of, expect, expect_same, trials_in, until


class Fleet:
    """A coordinator, two workers and `warploom batch` in one folder. `begun` numbers their logs. Both workers are on one machine; they
    count as two machines unless `one_machine`."""

    def __init__(self, scratch, folder, batch, files, one_machine):
        self.scratch, self.folder, self.begun, self.parts = scratch, folder, 0, []
        self.store, self.socket = scratch.path(f"{folder}/a.db"), scratch.path(f"{folder}/s")
        (scratch.root / folder).mkdir()
        for name, content in {"batch.toml": batch.encode(), **files}.items():
            (scratch.root / folder / name).write_bytes(content)
        self.callers = f"{folder}/callers"
        scratch.callers("" if one_machine else "machine box0 w0\nmachine box1 w1\n", self.callers)
        for worker in ("w0", "w1"):
            scratch.token(worker, "worker", callers=self.callers, file=f"{folder}/{worker}.token")

    def start(self):
        self.begun += 1
        name = f"{self.folder}.{self.begun}"
        address = f"unix:{self.socket}"
        (self.scratch.root / self.folder / "s").unlink(missing_ok=True)
        # The client starts first and waits for the coordinator.
        client = self.scratch.start("warploom", "batch", f"{self.folder}/batch.toml", "--server", address, "--jobs", 1, name=f"batch.{name}")
        daemon = self.scratch.serve(self.socket, "--callers", self.callers, store=self.store, name=f"warploomd.{name}")
        workers = [
            self.scratch.start("warploom-worker", "--server", address, "--token-file", f"{self.folder}/w{i}.token", "--name", "w", "--devices", "fake", name=f"w{i}.{name}")
            for i in range(2)
        ]
        self.parts = [client, daemon, *workers]
        return client

    def finish(self, deadline):
        """Starts the fleet and waits until the batch has ended. Returns the output of the batch."""
        code = self.start().wait(deadline)
        said = (self.scratch.root / f"batch.{self.folder}.{self.begun}.log").read_text()
        expect(code == 0, said)
        return said

    def kill(self):
        for part in self.parts:
            part.kill()

    def bundles(self):
        return bundles_of(self.scratch.root / self.folder / "bundles")


def killed_as_calm(scratch, batch, files, kills, deadline, one_machine=False):
    """Runs a batch undisturbed, then the same batch while all its processes are killed with SIGKILL `kills` times. Both must need as many
    trials and make the same bundles. Returns both fleets, of which the second still runs. With one_machine, no record is confirmed."""
    where = "-together" if one_machine else ""
    calm = Fleet(scratch, f"calm{where}", batch, files, one_machine)
    calm.said = calm.finish(deadline)
    calm.kill()
    whole = trials_in(calm.store)
    shaken = Fleet(scratch, f"shaken{where}", batch, files, one_machine)
    for number in range(1, kills + 1):
        client = shaken.start()
        enough = whole * number // (kills + 1)
        until(lambda: trials_in(shaken.store) >= enough or client.process.poll() is not None, deadline, f"{enough} trials")
        expect(client.process.poll() is None, "the batch ended before it was killed")
        shaken.kill()
    shaken.said = shaken.finish(deadline)
    expect(trials_in(shaken.store) == whole, f"{trials_in(shaken.store)} trials, without kills {whole}")
    expect_same(shaken.bundles(), calm.bundles())
    return calm, shaken
