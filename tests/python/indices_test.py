#!/usr/bin/env python3
"""Indices that are values of inputs. Models are tuned even if arbitrary generated indices would be outside of a table. A run with an index
outside of its axis ends with an error that names the index, wherever the bundle runs; with valid indices the values are right."""

import sys

from graphs import onnx_model
from harness import Scratch, expect, python_package, skip

try:
    import numpy as np
    import onnx
    from onnx import TensorProto as T, helper
except ImportError as error:
    skip(error)

sys.path.insert(0, str(python_package()))


def letters():
    """A model that gathers a row of a table for each letter of a text."""
    nodes = [
        helper.make_node("Cast", ["text"], ["wide"], to=T.INT64),
        helper.make_node("Sub", ["wide", "a"], ["place"]),
        helper.make_node("Gather", ["table", "place"], ["y"]),
    ]
    inputs = [("text", T.UINT8, [9]), ("table", T.FLOAT, [26, 4])]
    return onnx_model(nodes, inputs, [("y", T.FLOAT, [9, 4])], {"a": np.int64(97)})


def router():
    """A model that chooses the two best of 23 experts for each token, and gathers rows of a table by indices that are an input."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"], axis=-1),
        helper.make_node("TopK", ["p", "k"], ["best", "which"], axis=-1),
        helper.make_node("Gather", ["names", "which"], ["named"]),
        helper.make_node("Gather", ["table", "named"], ["y"]),
    ]
    inputs = [("x", T.FLOAT, [5, 23]), ("names", T.INT64, [23]), ("table", T.FLOAT, [23, 3])]
    return onnx_model(nodes, inputs, [("y", T.FLOAT, [5, 2, 3]), ("which", T.INT64, [5, 2])], {"k": np.array([2])})


def pairs():
    """A model that reads elements of a matrix by pairs of row and column, and updates elements by such pairs."""
    nodes = [helper.make_node("GatherND", ["x", "i"], ["y"]), helper.make_node("ScatterND", ["x", "i", "u"], ["z"])]
    inputs = [("x", T.FLOAT, [4, 3]), ("i", T.INT64, [2, 2]), ("u", T.FLOAT, [2])]
    return onnx_model(nodes, inputs, [("y", T.FLOAT, [2]), ("z", T.FLOAT, [4, 3])])


def single():
    """A model that gathers from a table of one row, for which only one index and its negative form are valid."""
    nodes = [helper.make_node("Gather", ["table", "i"], ["y"])]
    return onnx_model(nodes, [("table", T.FLOAT, [1, 4]), ("i", T.INT64, [3])], [("y", T.FLOAT, [3, 4])])


def unpooled():
    """A model that puts the maxima of two planes back to their places (MaxUnpool)."""
    nodes = [helper.make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2], strides=[2])]
    return onnx_model(nodes, [("x", T.FLOAT, [1, 2, 2]), ("i", T.INT64, [1, 2, 2])], [("y", T.FLOAT, [1, 2, 4])])


def cache():
    """A model that writes new rows into a cache of 5 rows, from an index on that an input gives for each batch."""
    nodes = [helper.make_node("TensorScatter", ["cache", "rows", "i"], ["y"])]
    inputs = [("cache", T.FLOAT, [2, 5, 3]), ("rows", T.FLOAT, [2, 2, 3]), ("i", T.INT64, [2])]
    model = onnx_model(nodes, inputs, [("y", T.FLOAT, [2, 5, 3])])
    model.opset_import[0].version, model.ir_version = 24, 11
    return model


def tuned(scratch, name, model, made_up=True):
    onnx.save(model, scratch.path(f"{name}.onnx"))
    scratch.run("warploom", "tune", scratch.path(f"{name}.onnx"), "--trials", 2, "--out", scratch.path(name))
    if made_up:  # the generated indices lie inside their axes
        scratch.run("warploom", "run", scratch.path(name), "--check")
    return scratch.path(name)


def run(scratch, bundle, arrays, exit_code=0):
    options = []
    for name, array in arrays.items():
        np.save(scratch.path(f"{name}.npy"), array)
        options += ["--input", f"{name}={scratch.path(name)}.npy"]
    return scratch.run("warploom", "run", bundle, *options, "--output-dir", scratch.path("out"), expect=exit_code)


def check(scratch, bundle, arrays, expected):
    run(scratch, bundle, arrays)
    for name, want in expected.items():
        got = np.load(scratch.path(f"out/{name}.npy"))
        expect(np.array_equal(got, want), f"{bundle}: {name} is {got}, expected {want}")


def refused(scratch, bundle, arrays, *said):
    error = run(scratch, bundle, arrays, exit_code=2).err
    for text in said:
        expect(text in error, f"{bundle}: {error}")


def main():
    rng = np.random.default_rng(1)
    with Scratch() as scratch:
        table = rng.normal(size=(26, 4)).astype(np.float32)
        bundle = tuned(scratch, "letters", letters())
        text = np.frombuffer(b"warploomz", np.uint8)
        check(scratch, bundle, {"text": text, "table": table}, {"y": table[text.astype(int) - 97]})
        refused(scratch, bundle, {"text": np.frombuffer(b"war~looms", np.uint8), "table": table}, "outside an axis of 26 elements")

        bundle = tuned(scratch, "router", router())
        x, names = rng.normal(size=(5, 23)).astype(np.float32), rng.permutation(23)
        which = np.argsort(-x, axis=-1)[:, :2]
        check(scratch, bundle, {"x": x, "names": names, "table": table[:23, :3]}, {"which": which, "y": table[:23, :3][names[which]]})
        refused(scratch, bundle, {"x": x, "names": names + 23, "table": table[:23, :3]}, "outside an axis of 23 elements")

        bundle = tuned(scratch, "pairs", pairs())
        x, updates = rng.normal(size=(4, 3)).astype(np.float32), np.array([5, 6], np.float32)
        places, after = np.array([[3, -1], [-4, 1]]), x.copy()
        after[places[:, 0], places[:, 1]] = updates
        check(scratch, bundle, {"x": x, "i": places, "u": updates}, {"y": x[places[:, 0], places[:, 1]], "z": after})
        # The column's index is outside its axis, although the offset that results in the flattened matrix is inside the matrix.
        refused(scratch, bundle, {"x": x, "i": np.array([[0, 3], [1, 1]]), "u": updates}, "index 3 is outside an axis of 3 elements")

        bundle = tuned(scratch, "single", single())
        check(scratch, bundle, {"table": table[:1], "i": np.array([0, -1, 0])}, {"y": table[[0, 0, 0]]})
        refused(scratch, bundle, {"table": table[:1], "i": np.array([0, 0, 1])}, "index 1 is outside an axis of 1 elements")

        # The two planes of the output have different ranges of valid indices.
        bundle = tuned(scratch, "unpooled", unpooled(), made_up=False)
        x, y = rng.normal(size=(1, 2, 2)).astype(np.float32), np.zeros((1, 2, 4), np.float32)
        y[0, [0, 0, 1, 1], [1, 2, 0, 3]] = x.ravel()
        check(scratch, bundle, {"x": x, "i": np.array([[[1, 2], [4, 7]]])}, {"y": y})
        # The range for the first plane is 0 to 3; outside it are an index before both planes, one of the second plane, and one after both.
        for place in (-1, 4, 8):
            refused(scratch, bundle, {"x": x, "i": np.array([[[1, place], [4, 7]]])}, "outside an axis of 4 elements")

        bundle = tuned(scratch, "kept", cache())
        x, rows, y = (rng.normal(size=(2, n, 3)).astype(np.float32) for n in (5, 2, 5))
        y[:], y[0, 3:], y[1, :2] = x, rows[0], rows[1]
        check(scratch, bundle, {"cache": x, "rows": rows, "i": np.array([3, 0])}, {"y": y})
        for place in (-1, 4):
            refused(scratch, bundle, {"cache": x, "rows": rows, "i": np.array([place, 0])}, "outside an axis of 4 elements")
        print("indices ok", flush=True)

        by_python(scratch.path("single"), table[:1])


def by_python(bundle, table):
    try:
        import warploom
    except ImportError as error:
        print(f"without the Python package: {error}")
        return
    model = warploom.load(bundle)
    try:
        model(table=table, i=np.array([0, 7, 0]))
    except IndexError as error:
        expect(isinstance(error, warploom.Error) and "index 7 is outside" in str(error), str(error))
    else:
        expect(False, "Python has no error for an index outside")
    expect(np.array_equal(model(table=table, i=np.array([0, 0, -1])), table[[0, 0, 0]]), "Python: a run after an error")


if __name__ == "__main__":
    main()
