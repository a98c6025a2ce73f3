#!/usr/bin/env python3
"""The Python package as users call it: tune, load and call with NumPy's arrays, several threads, and wrong use. Pytest runs this file."""

import os
import subprocess
import sys
import threading

import graphs
from harness import BIN, SOURCE, Scratch, python_package

sys.path.insert(0, str(python_package()))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import pytest  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import warploom  # noqa: E402

K, N = 24, 40


@pytest.fixture(scope="module")
def weights():
    draw = np.random.default_rng(1)
    return {"w": draw.standard_normal((K, N), np.float32), "b": draw.standard_normal(N, np.float32)}


def expected(x, weights):
    product = x @ weights["w"] + weights["b"]
    return np.maximum(product, 0), product.sum(axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def onnx_file(folder, weights):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
        helper.make_node("ReduceSum", ["sum", "axes"], ["rows"], keepdims=0),
    ]
    outputs = [("y", TensorProto.FLOAT, ["batch", N]), ("rows", TensorProto.FLOAT, ["batch"])]
    path = folder / "mlp.onnx"
    onnx.save(graphs.onnx_model(nodes, [("x", TensorProto.FLOAT, ["batch", K])], outputs, weights | {"axes": np.array([1])}), path)
    return path


@pytest.fixture(scope="module")
def model(onnx_file, folder):
    os.environ["WARPLOOM_BIN_DIR"] = str(BIN)
    return warploom.tune(onnx_file, out=folder / "tuned", trials=1, store=folder / "s.db", bind="batch=3,8")


def test_tunes_and_computes(model, weights):
    assert model.sizes == ["batch=3", "batch=8"]
    assert model.report["format"] == 1
    assert [(t.name, t.dtype, t.shape, t.nbytes) for t in model.inputs(1)] == [("x", "f32", (8, K), 8 * K * 4)]
    assert [t.name for t in model.outputs()] == ["y", "rows"]
    assert "x: f32[3,24]" in repr(model)
    for batch in 3, 8, 3:
        x = np.random.default_rng(batch).standard_normal((batch, K), np.float32)
        for y, rows in (model(x), model(x=x)):
            np.testing.assert_allclose(y, expected(x, weights)[0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(rows, expected(x, weights)[1], rtol=1e-5, atol=1e-4)


def test_takes_any_memory(model, weights):
    x = np.random.default_rng(3).standard_normal((3, K), np.float32)
    wide = np.zeros((3, 2 * K), np.float32)
    wide[:, ::2] = x
    odd = np.frombuffer(b"1234" + x.tobytes(), np.float32, offset=4).reshape(3, K)  # a read-only array whose address is no multiple of 64
    for given in wide[:, ::2], odd, np.asfortranarray(x):
        np.testing.assert_allclose(model(given)[0], expected(x, weights)[0], rtol=1e-5, atol=1e-5)


def test_uses_aligned_memory_in_place(folder, model):
    core = warploom._core.Model(str(folder / "tuned"))
    core.generate_weights(1)
    executor = warploom._core.Executor(core, 0, threads=1)
    assert executor.threads == 1 and executor.workspace >= 0
    own = executor.input(0)
    assert own.shape == (3, K) and own.dtype == np.float32
    made = warploom._model._empty(core.inputs(0)[0])
    executor.bind_input(0, made)
    assert executor.input(0).ctypes.data == made.ctypes.data
    executor.bind_input(0, None)
    assert executor.input(0).ctypes.data == own.ctypes.data
    del executor, core
    assert own.sum() == own.sum()  # the array is a view of the executor's memory and keeps the executor alive


def test_calls_at_the_same_time_use_an_executor_each(model, weights):
    wrong = []

    def call(seed):
        x = np.random.default_rng(seed).standard_normal((8 if seed % 2 else 3, K), np.float32)
        for _ in range(50):
            if not np.allclose(model(x)[0], expected(x, weights)[0], rtol=1e-5, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_says_what_was_wrong(folder, model, weights):
    x = np.zeros((3, K), np.float32)
    with pytest.raises(TypeError, match="no input is named z; the inputs are x"):
        model(z=x)
    with pytest.raises(TypeError, match="2 arrays were given; the inputs are x"):
        model(x, x)
    with pytest.raises(warploom.Error, match="tuned for batch=3; batch=8"):
        model(np.zeros((4, K), np.float32))
    with pytest.raises(warploom.Error, match=r"x is f32\[3,24\], the given array is f64\[3,24\]") as error:
        model(x.astype(np.float64))
    assert error.value.code == 3
    with pytest.raises(warploom.Error, match="nothing"):
        warploom.load(folder / "nothing")
    with pytest.raises(warploom.ProgramError, match="nothing.onnx") as tune_error:
        warploom.tune(folder / "nothing.onnx", trials=1)
    assert tune_error.value.code == 2
    with pytest.raises(warploom.Error, match="no weight is named v"):
        model.set_weight("v", x)
    np.testing.assert_allclose(model(x)[0], expected(x, weights)[0], rtol=1e-5, atol=1e-5)


def test_weights_of_canonical_text(folder):
    path = folder / "softmax_matmul.graph"
    path.write_text(graphs.SOFTMAX_MATMUL)
    with pytest.raises(warploom.ProgramError, match="--weight v: the graph has no such input"):
        warploom.tune(path, trials=1, weight="v")
    model = warploom.tune(path, trials=1, store=folder / "s.db", weight="w")
    assert [t.name for t in model.inputs()] == ["x"] and [t.name for t in model.weights()] == ["w"]
    draw = np.random.default_rng(1)
    x, w = draw.standard_normal((384, 512), np.float32), draw.standard_normal((512, 256), np.float32)
    with pytest.raises(warploom.Error, match="weight w") as error:
        model(x)
    assert error.value.code == 9
    for scale in 1, 2:
        model.set_weight("w", scale * w)
        softmax = np.exp(x - x.max(axis=1, keepdims=True))
        softmax /= softmax.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model(x), np.tanh(softmax @ (scale * w)), rtol=1e-4, atol=1e-5)


def test_shows_how_far_it_is_and_what_it_found(folder):
    path = folder / "softmax.graph"
    path.write_text(graphs.SOFTMAX)
    changes = []
    model = warploom.tune(path, trials=2, store=folder / "shown.db", progress=changes.append)
    assert changes[-1]["trials_done"] == changes[-1]["trials_total"] > 0
    group = changes[-1]["groups"][0]
    assert group["done"] and not group["cached"] and 0 < group["best_ns"] <= group["default_ns"]
    assert all(change["job"] == changes[0]["job"] for change in changes)
    totals = model.report["totals"]
    assert model.report.speed_up == pytest.approx(totals["default_ns"] / totals["best_ns"])
    assert model.report.rows()[-1][0] == "total"
    shown = model.report._repr_html_()
    assert model.report["groups"][0]["what"] in shown
    assert model.report.page.startswith("<!DOCTYPE html>") and shown.count("<iframe") == 1 and shown.count("<html") == 0


def test_report_shows_text_as_text():
    group = {"what": "<b>", "count": 1, "kernels_default": 2, "kernels": 1, "default_ns": 3e6, "best_ns": 1.5e6}
    report = warploom.Report(groups=[group], totals=group)
    assert report.rows() == [["<b>", "1", "2 → 1", "3 ms", "1.5 ms", "2.00x"], ["total", "", "2 → 1", "3 ms", "1.5 ms", "2.00x"]]
    assert "&lt;b&gt;" in report._repr_html_() and "<b>" not in report._repr_html_()
    sized = warploom.Report(sizes=[{"bind": {"n": 4}, "report": report}, {"bind": {"n": 8}, "report": report}])
    assert [row[0] for row in sized.rows()] == ["<b>", "total n=4", "<b>", "total n=8"] and sized.speed_up == 2


def test_client_of_a_coordinator(folder, onnx_file, weights):
    with Scratch() as scratch:
        address = "unix:" + scratch.path("s")
        client = warploom.Client(address)
        with pytest.raises(warploom.ProgramError) as error:
            client.status()
        assert error.value.code == 4
        scratch.serve(scratch.path("s"), store=scratch.path("c.db"))
        assert client.get(onnx_file, bind="batch=3") is None and client.record("0" * 64) is None
        scratch.start("warploom-worker", "--server", address, "--devices", "cpu", "--sandbox", "none", name="worker")
        model = client.tune(onnx_file, trials=1, bind="batch=3")
        x = np.ones((3, K), np.float32)
        np.testing.assert_allclose(model(x)[0], expected(x, weights)[0], rtol=1e-5, atol=1e-5)
        stored = client.get(onnx_file, bind="batch=3")
        np.testing.assert_array_equal(stored(x)[0], model(x)[0])
        key = model.report["groups"][0]["key"]
        assert client.record(key)["key"] == key and key in [record["key"] for record in client.records()]
        jobs = client.jobs()  # newest job first; the oldest job is that of the first get(), when the store lacked the kernels
        assert [job["state"] for job in jobs] == ["succeeded", "succeeded", "not_cached"]
        served = warploom.Client(address, cache=scratch.path("cache"))
        for source in "coordinator", "process":
            fetched = served.fetch(onnx_file, bind={"batch": 3})
            fetched.load_weights(onnx_file)
            assert fetched.source == source
            np.testing.assert_array_equal(fetched(x)[0], model(x)[0])
        assert served.fetch(key=key).source == "coordinator"
        assert not any("tf32" in client.record(record["key"])["graph"] for record in client.records())
        assert served.fetch(onnx_file, bind={"batch": 3}, trials=1, allow_tf32=True).source == "coordinator"
        assert any("tf32" in client.record(record["key"])["graph"] for record in client.records())
        assert served.fetch(key=key).chosen == "" and warploom.load(folder / "tuned").chosen == ""
        with pytest.raises(ValueError, match="'wait', 'now', 'later'; found 'soon'"):
            served.fetch(onnx_file, tune="soon")
        predicted = served.fetch(onnx_file, bind={"batch": 5}, trials=4, tune="now")
        assert (predicted.source, predicted.chosen, predicted.replaced) == ("coordinator", "predicted", False)
        predicted.load_weights(onnx_file)
        np.testing.assert_allclose(predicted(np.ones((5, K), np.float32))[0], expected(np.ones((5, K)), weights)[0], rtol=1e-5, atol=1e-5)
        with pytest.raises(warploom.Error, match="no kernels in time"):
            served.fetch(onnx_file, bind={"batch": 9}, trials=500, deadline=0)
        assert warploom.Client("unix:none", cache=scratch.path("cache")).fetch(key=key, fallback=folder / "tuned").source == "fallback"
        (scratch.root / "signers").write_text(f"{'ab' * 32} somebody else\n")
        with pytest.raises(warploom.Error, match="signed by") as error:
            warploom.Client(address, cache=scratch.path("cache"), signers=scratch.path("signers")).fetch(key=key)
        assert error.value.code == 7
        job = jobs[1]
        assert [worker["alive"] for worker in client.workers()] == [True]
        assert list(client.watch(job["name"]))[-1]["state"] == "succeeded"
        assert client.wait(job["name"])["groups"] == model.report["groups"]
        assert client.cancel(job["name"]) == {"format": 1, "name": job["name"], "state": "succeeded"}
        with pytest.raises(warploom.ProgramError, match="jobs/999"):
            list(client.watch("jobs/999"))


def test_an_interrupt_keeps_the_best(folder):
    path = folder / "interrupted.graph"
    path.write_text(graphs.SOFTMAX_MATMUL)

    def interrupt(change):
        if change["trials_done"] > 0 and not interrupt.sent:
            interrupt.sent = True
            raise KeyboardInterrupt

    interrupt.sent = False
    with pytest.raises(KeyboardInterrupt, match="goes on from here"):
        warploom.tune(path, trials=100_000, store=folder / "i.db", progress=interrupt)
    assert interrupt.sent


def test_what_a_thread_holds_at_the_end_is_freed(folder):
    """A daemon thread lives longer than the library's module. Objects that it holds are freed without messages."""
    code = f"""
import threading, time
import numpy, warploom
model = warploom.load({str(folder / "tuned")!r})
kept = warploom.Client("unix:/none")
threading.Thread(target=lambda *held: time.sleep(1000), args=(model, kept), daemon=True).start()
model.generate_weights()
model(numpy.ones(model.inputs()[0].shape, "f4"))
1 / 0
"""
    environment = os.environ | {"PYTHONPATH": str(BIN.parent / "python")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert "ZeroDivisionError" in done.stderr and "nanobind" not in done.stderr, done.stderr


def test_says_that_pytorch_is_missing():
    code = "import sys; sys.modules['torch'] = None\nimport warploom.torch"
    environment = os.environ | {"PYTHONPATH": str(python_package())}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1 and "ImportError: warploom.torch needs PyTorch 2.6 or newer" in done.stderr, done.stderr


def test_installed_it_needs_no_build_tree(folder, model, monkeypatch):
    """The files of a wheel (the module, the library and the programs) work in another folder, without the build tree."""
    place = folder / "site"
    install = ["cmake", "--install", BIN.parent, "--component", "python", "--prefix", place]
    subprocess.run(install, check=True, capture_output=True)
    for written in (SOURCE / "client/python/warploom").rglob("*.py"):
        target = place / "warploom" / written.relative_to(SOURCE / "client/python/warploom")
        target.parent.mkdir(exist_ok=True)
        target.write_text(written.read_text())
    needed = subprocess.run(["ldd", next(place.glob("warploom/_core*.so"))], capture_output=True, text=True, check=True).stdout
    assert f"{place}/warploom/lib/libwarploom.so.1" in needed
    path = folder / "installed.graph"
    path.write_text(graphs.SOFTMAX)
    code = f"""
import numpy, warploom, warploom.onnxruntime
model = warploom.tune({str(path)!r}, trials=1, store={str(folder / "installed.db")!r})
y = model(numpy.ones((32, 200), "f4"))
warploom.load({str(folder / "tuned")!r}).load_weights({str(folder / "mlp.onnx")!r})
warploom.onnxruntime.session({str(folder / "tuned")!r}, weights={str(folder / "mlp.onnx")!r})
print(warploom.__file__, warploom._program.program())
"""
    environment = {name: value for name, value in os.environ.items() if name != "WARPLOOM_BIN_DIR"} | {"PYTHONPATH": str(place), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"{place}/warploom/__init__.py", f"{place}/warploom/bin/warploom"]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
