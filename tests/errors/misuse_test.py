#!/usr/bin/env python3
"""Misuse: every *.txt beside this file, in graphs/ (wrong graphs) and in words/ (misspelt names) has a command, its exit code and the first
line of its message. The function of the same name makes the files that the command needs. UPDATE_GOLDEN=1 rewrites the files."""

import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import graphs  # noqa: E402
import onnx_bytes  # noqa: E402
from harness import BIN, MODELS, Scratch, kill_group  # noqa: E402

CASES = {}


class Skipped(Exception):
    pass


def case(command):
    def register(function):
        CASES[function.__name__] = (command, function)
        return function

    return register


def write_graph(scratch, name, text):
    (scratch.root / name).write_text(text)


def write_model(scratch, *, op="Exp", dims=(4, 8), dtype=1, name="model.onnx"):
    value = onnx_bytes.value_info
    (scratch.root / name).write_bytes(
        onnx_bytes.model([onnx_bytes.node(op, ["x"], ["y"], "first")], [value("x", dims, dtype)], [value("y", dims, dtype)])
    )


def bundle(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)
    scratch.run("warploom", "tune", "scalar.graph", "--trials", 1, "--out", "tuned")


@case("warploom")
def no_command(scratch):
    pass


@case("warploom tune model.onnx --trials none")
def wrong_option(scratch):
    pass


@case("warploom tune missing.onnx")
def missing_file(scratch):
    pass


@case("warploom tune model.onnx")
def truncated_onnx(scratch):
    (scratch.root / "model.onnx").write_bytes((MODELS / "layernorm_residual.onnx").read_bytes()[:300])


@case("warploom tune model.onnx")
def unknown_op(scratch):
    write_model(scratch, op="Frobnicate")


@case("warploom tune model.onnx")
def unbound_dimension(scratch):
    write_model(scratch, dims=("batch", 8))


@case("warploom tune model.onnx --bind batch=0x")
def wrong_binding(scratch):
    write_model(scratch, dims=("batch", 8))


@case("warploom tune model.onnx")
def dtype_not_supported(scratch):
    write_model(scratch, dtype=14)


@case("warploom tune two.graph")
def two_outputs_with_one_name(scratch):
    write_graph(scratch, "two.graph", graphs.TWO_OUTPUTS)


@case("warploom tune cycle.graph")
def cycle_in_text(scratch):
    write_graph(scratch, "cycle.graph", graphs.CYCLE)


@case("warploom tune scalar.graph --target cpu:abacus")
def unknown_target(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune scalar.graph --target banana")
def target_of_no_kind(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom inspect scalar.graph --target cpu:avx521")
def misspelt_target(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tun model.onnx")
def misspelt_command(scratch):
    pass


@case("warploom tune scalar.graph --triasl 8")
def misspelt_option(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune scalar.graph --effort through")
def misspelt_word(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune scalar.graph --strategy portfolo")
def misspelt_strategy(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune model.onnx --bind btch=2")
def misspelt_binding(scratch):
    write_model(scratch, dims=("batch", 8))


@case("warploom tune model.onnx --bind batch=2 --bind sqe=3")
def binding_of_nothing(scratch):
    write_model(scratch, dims=("batch", "seq"))


@case("warploom run tuned --input X1=x.npy")
def misspelt_input(scratch):
    write_graph(scratch, "two.graph", graphs.SOFTMAX.replace('"x"', '"x1"'))
    scratch.run("warploom", "tune", "two.graph", "--trials", 1, "--out", "tuned")


@case("warploom tune scalar.graph --strategy prayer")
def unknown_strategy(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune scalar.graph --allow-fp8")
def unknown_option(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune scalar.graph --cover blanket")
def unknown_cover(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune scalar.graph --libraries cudnn")
def unknown_library(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom inspect scalar.graph --why")
def why_of_what(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom get scalar.graph")
def not_in_the_store(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom run tuned --check")
def bundle_with_a_byte_flipped(scratch):
    bundle(scratch)
    file = scratch.root / "tuned/graph.txt"
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(data)


@case("warploom run tuned --check")
def bundle_with_its_manifest_flipped(scratch):
    bundle(scratch)
    file = scratch.root / "tuned/manifest.json"
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"grid": 1', b'"grid": 7', 1))


@case("warploom run empty")
def no_bundle(scratch):
    (scratch.root / "empty").mkdir()


@case("warploom tune scalar.graph --bind n=5")
def bound_text(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom run tuned --bind n=5")
def size_not_tuned(scratch):
    write_model(scratch, dims=("n", 8))
    scratch.run("warploom", "tune", "model.onnx", "--trials", 1, "--bind", "n=4,6", "--out", "tuned")


@case("warploom run tuned")
def size_not_chosen(scratch):
    size_not_tuned(scratch)


@case("warploom run tuned --input q=q.npy")
def no_such_input(scratch):
    bundle(scratch)


@case("warploom run tuned --input x=x.npy")
def input_of_another_shape(scratch):
    bundle(scratch)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
    header += b" " * (117 - len(header)) + b"\n"
    (scratch.root / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))


@case("warploom tune scalar.graph --trials 1 --out mine")
def out_is_no_bundle(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)
    (scratch.root / "mine").mkdir()
    (scratch.root / "mine/thesis.txt").write_text("years")


@case("warploom tune scalar.graph --store file/store.db")
def unwritable_store(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)
    (scratch.root / "file").write_text("not a folder")


@case("warploom tune scalar.graph --store junk.db")
def store_is_no_store(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)
    (scratch.root / "junk.db").write_text("junk" * 2000)


@case("warploom tune scalar.graph --trials 1 --json /dev/full")
def full_disk_report(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


@case("warploom tune scalar.graph --trials 1 --store small/store.db")
def full_disk_store(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)
    small_disk(scratch, "128k")


@case("warploom get scalar.graph --out small/tuned")
def full_disk_bundle(scratch):
    bundle(scratch)
    small_disk(scratch, "12k")


def small_disk(scratch, size):
    """Mounts a disk of `size` at small/, which is unmounted when the test ends. Skips the case if the test is not run as root."""
    if scratch.mounted("small", f"size={size}") is None:
        raise Skipped("mounting a small disk needs root")


@case("warploomd --store store.db --listen 127.0.0.1:$PORT")
def port_in_use(scratch):
    scratch.taken = socket.socket()
    scratch.taken.bind(("127.0.0.1", 0))
    scratch.taken.listen()
    scratch.port = scratch.taken.getsockname()[1]


@case("warploomd --store store.db --listen 0.0.0.0:0")
def listening_to_the_world(scratch):
    pass


@case("warploom tune scalar.graph --server unix:nowhere.sock")
def no_coordinator(scratch):
    write_graph(scratch, "scalar.graph", graphs.SCALAR)


def run(name):
    command, prepare = CASES[name]
    with Scratch() as scratch:
        scratch.port = 0
        options = prepare(scratch) or {}
        words = shlex.split(command.replace("$PORT", str(scratch.port)))
        process = subprocess.Popen(
            [str(BIN / words[0]), *words[1:]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=scratch.environment,
            cwd=scratch.root,
            start_new_session=True,
            **options,
        )
        try:
            said = process.communicate(timeout=60)[1]
            code = process.returncode
        except subprocess.TimeoutExpired:
            code, said = "none: still running after 60 s", ""
        finally:
            kill_group(process)
            process.wait()
        # The program's lines before the error message show progress, so they are ignored.
        first = next((line for line in said.splitlines() if re.match(r"warploom[a-z-]*: ", line)), "")
        first = first.replace(str(scratch.root), "$DIR").replace(str(scratch.port or "$PORT"), "$PORT")
        # The printed number of kernels depends on the cover, which this test does not check.
        first = re.sub(r"\b\d+ of \d+ kernels", "$N of $N kernels", first)
        return f"$ {command}\nexit {code}\n{first}\n"


def golden_of(name):
    return next(HERE.rglob(f"{name}.txt"), HERE / f"{name}.txt")


def main():
    names = sys.argv[1:] or list(CASES)
    update = os.environ.get("UPDATE_GOLDEN") == "1"
    wrong = 0
    for name in names:
        golden = golden_of(name)
        try:
            found = run(name)
        except Skipped as why:
            print(f"{name}: skipped: {why}")
            continue
        if update:
            golden.write_text(found)
        expected = golden.read_text() if golden.exists() else "(no golden; UPDATE_GOLDEN=1 writes it)\n"
        if found != expected:
            wrong += 1
            print(f"{name}:\nexpected\n{expected}found\n{found}", flush=True)
    stray = {path.stem for path in HERE.rglob("*.txt")} - set(CASES)
    for name in sorted(stray):
        print(f"{name}.txt belongs to no case")
    print(f"{len(names)} cases, {wrong} wrong")
    sys.exit(1 if wrong or stray else 0)


if __name__ == "__main__":
    main()
