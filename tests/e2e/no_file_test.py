#!/usr/bin/env python3
"""Programs end at once, with a message that names the file, if a user gives them anything but a regular file of a readable size: a pipe
without a writer, a device without an end, a folder, a socket, or a sparse file of 4 TB. This holds wherever a program opens a file."""

import os
import shutil
import socket
import stat

import graphs
import numpy as np
import onnx
from harness import Scratch, expect
from onnx import TensorProto, helper

DEADLINE = 30
HUGE = 4 << 40


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def folder(path):
    path.mkdir()


def bound_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a Unix socket may have at most 107 bytes, so the socket is bound by its file name alone
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def with_holes(path):
    with open(path, "wb") as out:
        out.truncate(HUGE)


KINDS = {"pipe": pipe, "device": device, "folder": folder, "socket": bound_socket, "holes": with_holes}


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


def external_model(path, location, extent=4):
    """Writes a model of y = x + w, with the `extent` values of w in another file."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [extent])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [extent])
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[extent], data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value=location)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def rows(scratch):
    """Yields commands, each with a file that it opens."""
    root = scratch.root
    yield ("warploom", "tune", "k.onnx"), "k.onnx"
    yield ("warploom", "tune", "k.graph"), "k.graph"
    yield ("warploom", "inspect", "k.onnx"), "k.onnx"
    yield ("warploom", "run", "tuned", "--input", "x=k.npy"), "k.npy"
    for name in "k.npy", "k.npz", "k.onnx":
        yield ("warploom", "run", "tuned", "--weights", name), name
    yield ("warploom", "tune", "external.onnx"), "data.bin"
    yield ("warploom", "batch", "k.toml"), "k.toml"
    kernel = next((root / "tuned/kernels").glob("*.so")).name
    for name in "manifest.json", "graph.txt", f"kernels/{kernel}":
        yield ("warploom", "run", "broken"), f"broken/{name}"
    yield ("warploom", "run", "broken"), "broken/kernels/" + kernel.replace(".so", ".graph")
    yield ("warploom", "export", "broken", "--out", "exported"), "broken/kernels/" + kernel.replace(".so", ".cpp")
    for option in "--tls-ca", "--token-file", "--signers":
        yield ("warploom", "status", "--server", "127.0.0.1:1", option, "k.pem"), "k.pem"
    for options in ["--callers"], ["--config"], ["--signing-key"], ["--tls-key", "k.pem", "--tls-cert"]:
        yield ("warploomd", "--store", "d.db", "--listen", "unix:d.sock", *options, "k.pem"), "k.pem"
    yield ("warploomd", "--store", "d.db", "--listen", "unix:d.sock", "--restore", "k.db"), "k.db"
    yield ("warploom", "tune", "scalar.graph", "--store", "k.db"), "k.db"
    yield ("warploomd", "token", "ci", "--callers", "k.pem", "--role", "client"), "k.pem"


def every_place(scratch):
    root = scratch.root
    for kind, make in KINDS.items():
        for command, name in rows(scratch):
            if (kind, name) in (("folder", "k.npz"), ("holes", "data.bin")):
                # These two cases are left out, since they are allowed: weights as a folder of arrays, and external data as a part of a larger
                # file.
                continue
            shutil.rmtree(root / "broken", ignore_errors=True)
            shutil.copytree(root / "tuned", root / "broken")
            remove(root / name)
            make(root / name)
            ended = scratch.run(*command, deadline=DEADLINE, expect=None)
            label = f"{kind}, {' '.join(map(str, command))}: {ended.code}\n{ended.err}"
            expect(ended.code > 0, label)
            named = os.path.basename(name) in ended.err or (kind == "device" and "/dev/zero" in ended.err)
            expect(named, label)
            remove(root / name)
    made = [path for path in root.rglob("*") if stat.S_ISFIFO(path.lstat().st_mode)]
    expect(not made, made)


def the_reason_is_said(scratch):
    """Messages name the path and, as the reason, the size over the limit or the kind of file."""
    root = scratch.root
    with_holes(root / "k.npy")
    said = scratch.run("warploom", "run", "tuned", "--input", "x=k.npy", deadline=DEADLINE, expect=2).err
    expect(f"cannot read k.npy: it has {HUGE} bytes, over the limit of " in said, said)
    remove(root / "k.npy")
    pipe(root / "k.npy")
    said = scratch.run("warploom", "run", "tuned", "--input", "x=k.npy", deadline=DEADLINE, expect=2).err
    expect("cannot read k.npy: it is a named pipe, expected a regular file" in said, said)
    remove(root / "k.npy")
    # The weights are larger than any memory. Their file is sparse, so it takes hardly any space on the disk.
    external_model(root / "huge.onnx", "holes.bin", HUGE // 4)
    with_holes(root / "holes.bin")
    said = scratch.run("warploom", "run", "tuned", "--weights", "huge.onnx", deadline=DEADLINE, expect=2).err
    expect("initializer w: " in said, said)
    remove(root / "holes.bin")
    # A symbolic link to a regular file is accepted.
    np.save(root / "given.npy", np.zeros((), np.float32))
    (root / "k.npy").symlink_to("given.npy")
    scratch.run("warploom", "run", "tuned", "--input", "x=k.npy")


def stored_objects(scratch):
    """If pipes replace the object files of a store, the program does not wait for them."""
    root = scratch.root
    objects = [path for path in (root / "s.db.objects").rglob("*") if path.is_file()]
    expect(objects, "a store has objects")
    for path in objects:
        path.unlink()
        pipe(path)
    ended = scratch.run("warploom", "get", "scalar.graph", "--store", "s.db", "--out", "got", deadline=DEADLINE, expect=None)
    expect(ended.code >= 0, f"{ended.code}: {ended.err}")


def main():
    with Scratch() as scratch:
        root = scratch.root
        (root / "scalar.graph").write_text(graphs.SCALAR)
        external_model(root / "external.onnx", "data.bin")
        scratch.run("warploom", "tune", "scalar.graph", "--store", "s.db", "--trials", 1, "--out", "tuned")
        every_place(scratch)
        the_reason_is_said(scratch)
        stored_objects(scratch)


if __name__ == "__main__":
    main()
