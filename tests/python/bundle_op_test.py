#!/usr/bin/env python3
"""Bundles as nodes of onnxruntime's graphs: their results, several sizes, concurrent threads, and wrong use. Pytest runs this file."""

import os
import sys
import threading

from harness import BIN, python_package

sys.path.insert(0, str(python_package()))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import pytest  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import warploom  # noqa: E402
import warploom.onnxruntime  # noqa: E402

K, N = 24, 40
CPU = ["CPUExecutionProvider"]


def tensor(name, *shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def opsets():
    return [helper.make_opsetid("", 17), helper.make_opsetid("warploom", 1)]


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(1).standard_normal((K, N), np.float32)


@pytest.fixture(scope="module")
def file(tmp_path_factory, weight):
    """A model of relu(x w), and of the index of the largest element in each row of x w."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["y"]),
        helper.make_node("ArgMax", ["product"], ["largest"], axis=1, keepdims=0),
    ]
    outputs = [tensor("y", "batch", N), tensor("largest", "batch", dtype=TensorProto.INT64)]
    graph = helper.make_graph(nodes, "layer", [tensor("x", "batch", K)], outputs, [numpy_helper.from_array(weight, "w")])
    path = tmp_path_factory.mktemp("onnxruntime") / "layer.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets()[:1], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def bundle(file):
    os.environ["WARPLOOM_BIN_DIR"] = str(BIN)
    warploom.tune(file, out=file.parent / "tuned", trials=1, store=file.parent / "store.db", bind="batch=3,8", progress=False)
    return file.parent / "tuned"


@pytest.fixture(scope="module")
def session(bundle, file):
    return warploom.onnxruntime.session(bundle, weights=file, threads=1)


def drawn(rows, seed=2):
    return np.random.default_rng(seed).standard_normal((rows, K), np.float32)


@pytest.mark.parametrize("rows", [3, 8])
def test_a_session_computes_what_the_model_says(session, weight, rows):
    x = drawn(rows)
    y, largest = session.run(None, {"x": x})
    np.testing.assert_allclose(y, np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(largest, (x @ weight).argmax(1))
    assert largest.dtype == np.int64


def of_others(bundle, file, **given):
    """Returns a model in which the bundle is a node between two nodes of onnxruntime."""
    nodes = [
        helper.make_node("Neg", ["x"], ["negative"]),
        warploom.onnxruntime.node(bundle, ["negative"], ["y", "largest"], weights=file),
        helper.make_node("Add", ["y", "one"], ["z"]),
    ]
    inner = [tensor("y", 8, N), tensor("largest", 8, dtype=TensorProto.INT64)]
    graph = helper.make_graph(nodes, "all", [tensor("x", 8, K, **given)], [tensor("z", 8, N)], [numpy_helper.from_array(np.float32(1), "one")], value_info=inner)
    return helper.make_model(graph, opset_imports=opsets(), ir_version=8).SerializeToString()


def test_it_is_a_node_among_others_whose_other_output_nobody_reads(bundle, file, weight):
    options = warploom.onnxruntime.register(onnxruntime.SessionOptions())
    session = onnxruntime.InferenceSession(of_others(bundle, file), options, providers=CPU)
    x = drawn(8)
    np.testing.assert_allclose(session.run(["z"], {"x": x})[0], np.maximum(-x @ weight, 0) + 1, rtol=1e-5, atol=1e-5)


def test_threads_run_one_session_at_once(session, weight):
    wrong = []

    def run(seed):
        for turn in range(50):
            x = drawn(3 if turn % 2 else 8, 100 * seed + turn)
            y = session.run(["y"], {"x": x})[0]
            if not np.allclose(y, np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sessions_end_in_any_order(bundle, file):
    first, second = (warploom.onnxruntime.session(bundle, weights=file) for _ in range(2))
    del first
    assert second.run(["y"], {"x": drawn(3)})[0].shape == (3, N)


def test_a_size_that_was_not_tuned_is_an_error_that_says_which_are(session):
    with pytest.raises(Exception, match="batch=3.*batch=8"):
        session.run(None, {"x": drawn(5)})


def test_elements_of_another_type_are_an_error(bundle, file):
    options = warploom.onnxruntime.register(onnxruntime.SessionOptions())
    session = onnxruntime.InferenceSession(of_others(bundle, file, dtype=TensorProto.DOUBLE), options, providers=CPU)
    with pytest.raises(Exception, match="ONNX type 11; the bundle takes f32"):
        session.run(None, {"x": drawn(8).astype(np.float64)})


def test_weights_that_are_not_there_are_an_error_when_the_session_is_made(bundle, tmp_path):
    with pytest.raises(Exception, match="none.onnx"):
        warploom.onnxruntime.session(bundle, weights=tmp_path / "none.onnx")


def test_a_folder_that_is_no_bundle_is_an_error_when_the_session_is_made(tmp_path):
    made = warploom.onnxruntime.node(tmp_path, ["x"], ["y"])
    graph = helper.make_graph([made], "g", [tensor("x", 8, K)], [tensor("y", 8, N)])
    model = helper.make_model(graph, opset_imports=opsets(), ir_version=8).SerializeToString()
    with pytest.raises(Exception, match="manifest"):
        onnxruntime.InferenceSession(model, warploom.onnxruntime.register(onnxruntime.SessionOptions()), providers=CPU)


def test_as_many_inputs_as_the_bundle_has(bundle, file):
    made = warploom.onnxruntime.node(bundle, ["x", "x"], ["y", "largest"], weights=file)
    outputs = [tensor("y", 8, N), tensor("largest", 8, dtype=TensorProto.INT64)]
    graph = helper.make_graph([made], "g", [tensor("x", 8, K)], outputs)
    model = helper.make_model(graph, opset_imports=opsets(), ir_version=8).SerializeToString()
    session = onnxruntime.InferenceSession(model, warploom.onnxruntime.register(onnxruntime.SessionOptions()), providers=CPU)
    with pytest.raises(Exception, match="2 inputs and 2 outputs; the bundle has 1 and 2"):
        session.run(None, {"x": drawn(8)})


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
