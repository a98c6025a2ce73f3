#!/usr/bin/env python3
"""With torch.compile(.., backend="warploom"), an index outside of its axis, which eager mode refuses too, raises IndexError and reads no
other memory."""

import sys

from harness import expect, python_package, torch_test


def cases(torch):
    """Returns a dict: name -> a function of a table of 5 rows and an index, indices that eager accepts, and indices that it refuses."""
    rows = lambda i: i[:, None].expand(-1, 3)  # noqa: E731
    return {
        "embedding": (lambda w, i: torch.nn.functional.embedding(i, w), [[0, 4]], [[0, 5], [0, -1]]),
        "gather": (lambda w, i: w.gather(0, rows(i)), [[0, 4]], [[0, 5], [0, -1]]),
        "index_select": (lambda w, i: w.index_select(0, i), [[0, 4]], [[0, 5], [0, -1]]),
        "index": (lambda w, i: w[i], [[0, 4], [-5, -1]], [[0, 5], [0, -6]]),
        "pairs": (lambda w, i: w[i, i.clamp(0, 2)], [[0, 4], [-5, -1]], [[0, 5]]),
        "index_put": (lambda w, i: w.index_put((i,), torch.tensor(7.0)), [[0, 4], [-5, -1]], [[0, 5], [0, -6]]),
        "scatter": (lambda w, i: w.scatter(0, rows(i), 1.0), [[0, 4]], [[0, 5], [0, -1]]),
    }


def child():
    sys.path.insert(0, str(python_package()))
    import torch
    import warploom.torch

    table = torch.randn(5, 3)
    for name, (function, taken, refused) in cases(torch).items():
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="warploom", options={"tune": "first", "trials": 1}, dynamic=False)
        for index in map(torch.tensor, taken):
            expect(torch.equal(compiled(table, index), function(table, index)), f"{name} of {index.tolist()}")
        for index in map(torch.tensor, refused):
            try:
                compiled(table, index)
            except IndexError as error:
                expect("outside an axis of 5 elements" in str(error), f"{name} of {index.tolist()}: {error}")
            else:
                expect(False, f"{name} of {index.tolist()}: no error")
        expect(all(entry["kernels"] for entry in warploom.torch.report()), f"{name} stays with eager")
    print("indices ok")


if __name__ == "__main__":
    sys.exit(torch_test(__file__, child, timeout=300))
