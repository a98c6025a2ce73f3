#!/usr/bin/env python3
"""A program asks for kernels that are predicted now and searched later: it gets the first at once, the second when the coordinator's workers
have found them, in this process and in others. When its client ends, so does its search, but not that of another client."""

import sys

import graphs
from harness import Scratch, expect, python_package, until

sys.path.insert(0, str(python_package()))

import warploom  # noqa: E402

LONG = 2000  # trials of a search that does not end during the test


class Fleet:
    def __init__(self, scratch):
        self.scratch, self.server = scratch, f"unix:{scratch.path('s')}"
        scratch.serve("s", store="a.db")
        scratch.start("warploom-worker", "--server", self.server, name="worker")
        until(lambda: self.listed("workers"), 60, "the worker registers")

    def listed(self, what):
        return self.scratch.run("warploom", what, "--server", self.server, "--json", "-").json()[what]

    def states(self):
        """The states of all jobs but those that the coordinator made, the oldest first."""
        return [job["state"] for job in reversed(self.listed("jobs")) if not job["label"].startswith("background: ")]

    def client(self, cache="cache"):
        return warploom.Client(self.server, cache=self.scratch.path(cache), counts=False)


def later(client, graph, trials):
    model = client.fetch(graph, trials=trials, tune="later")
    model.generate_weights()
    return model


def main():
    with Scratch() as scratch:
        for name in ("SOFTMAX", "FEED_FORWARD"):
            (scratch.root / f"{name}.graph").write_text(getattr(graphs, name))
        fleet = Fleet(scratch)
        client, graph = fleet.client(), scratch.path("SOFTMAX.graph")
        first = later(client, graph, 8)
        expect((first.source, first.chosen) == ("coordinator", "predicted"), (first.source, first.chosen))
        # If the search finds nothing better, the same kernels are tuned ones from then on.
        until(lambda: first.replaced or first.chosen == "tuned", 240, "the search ends")
        second = later(client, graph, 8)
        expect((second.source, second.chosen, second.replaced) == ("process", "tuned", False), (second.source, second.chosen))
        expect(fleet.states() == ["succeeded"] * 2, fleet.states())
        third = fleet.client().fetch(graph, trials=8, tune="now")
        expect((third.source, third.chosen) == ("disk", "tuned"), (third.source, third.chosen))

        # Two clients, which share no cache, want the same search. Each has a job of its own.
        graph = scratch.path("FEED_FORWARD.graph")
        one, two = fleet.client("one"), fleet.client("two")
        for client in (two, one):
            expect(later(client, graph, LONG).chosen == "predicted", "the search has not ended")
        until(lambda: fleet.states()[2:].count("running") == 2, 60, "two searches run")
        del client, one
        until(lambda: fleet.states()[2:].count("cancelled") == 1, 60, "the search of the first client is cancelled")
        expect(fleet.states()[2:].count("running") == 1, fleet.states())
        del two
        until(lambda: fleet.states()[2:].count("cancelled") == 2, 60, "that of the second one, too")


if __name__ == "__main__":
    main()
