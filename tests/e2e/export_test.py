#!/usr/bin/env python3
"""`warploom export` writes a bundle as sources that build with gcc and with clang, without a warning, from the exported folder alone. The
self-test finds wrong weights; a caller in C gets the right results; wrong use is refused."""

import json
import shutil

import graphs
import numpy as np
import onnx
from exported import STRICT, built
from harness import BIN, WHOLE, Scratch, expect, has_sanitizer, skip, tool
from onnx import TensorProto, helper

CALLER = """
#include <stdio.h>
#include <stdlib.h>
#include "@NAME@.h"

int main(int argc, char** argv) {
  const char* error;
  @NAME@* model = @NAME@_create(argv[1], argc - 2, &error);
  float *x = aligned_alloc(64, 4096), *y = aligned_alloc(64, 4096), *again = aligned_alloc(64, 4096);
  const void* inputs[@NAME@_INPUTS] = {x};
  void* outputs[@NAME@_OUTPUTS] = {y, again};
  if (model == NULL) return puts(error), 3;
  for (int i = 0; i < 6; ++i) x[i] = (float)i;
  if ((error = @NAME@_run(model, inputs, outputs)) != NULL) return puts(error), 4;
  for (int i = 0; i < 8; ++i) printf("%g %g ", y[i], again[i]);
  inputs[0] = x + 1;
  puts(@NAME@_run(model, inputs, outputs));
  @NAME@_destroy(model);
  return 0;
}
"""


def model_of_one_product(path):
    """Writes a model of y = x w + b that also returns y as a second output, which no kernel stores. Returns the y of x = 0 .. 5."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
        helper.make_node("Identity", ["y"], ["again"]),
    ]
    weights = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(4, np.float32)}
    outputs = [(name, TensorProto.FLOAT, [2, 4]) for name in ("y", "again")]
    onnx.save(graphs.onnx_model(nodes, [("x", TensorProto.FLOAT, [2, 3])], outputs, weights), path)
    return np.arange(6, dtype=np.float32).reshape(2, 3) @ weights["w"] + weights["b"]


def called_from_c(scratch, store):
    expected = model_of_one_product(scratch.root / "product.onnx")
    scratch.run("warploom", "tune", "product.onnx", "--store", store, "--trials", 2, "--out", "product")
    scratch.run("warploom", "export", "product", "--weights", "product.onnx", "--out", "linear")
    folder = scratch.root / "linear"
    build = built(folder, ("cc", "c++"))
    tool(build / "self_test", 2)
    (folder / "caller.c").write_text(CALLER.replace("@NAME@_INPUTS", "LINEAR_INPUTS").replace("@NAME@_OUTPUTS", "LINEAR_OUTPUTS").replace("@NAME@", "linear"))
    tool("cc", "-std=c11", *STRICT.split(), "-c", folder / "caller.c", "-I", folder, "-o", folder / "caller.o")
    tool("c++", folder / "caller.o", build / "liblinear.a", "-lpthread", "-o", folder / "caller")
    for threads in [], ["1"], ["1", "2", "3"]:
        values = tool(folder / "caller", folder / "weights.bin", *threads).split()
        found = np.array(values[:16], np.float32).reshape(8, 2)
        expect(np.array_equal(found[:, 0], expected.ravel()) and np.array_equal(found[:, 0], found[:, 1]), f"{values}")
        expect(" ".join(values[16:]) == "an input does not begin at a multiple of 64 bytes", f"{values}")
    (folder / "short.bin").write_bytes((folder / "weights.bin").read_bytes()[:-1])
    for wrong in "short.bin", "nothing.bin":
        expect("of another model" in tool(folder / "caller", folder / wrong, code=3), wrong)


def self_test_finds(scratch, folder):
    """The self-test of an export fails with weights of other values, and passes again with the right weights."""
    broken = scratch.root / "broken"
    shutil.copytree(folder, broken, ignore=shutil.ignore_patterns("build-*"))
    weights = bytearray((broken / "weights.bin").read_bytes())
    weights[: len(weights) // 2] = bytes(len(weights) // 2)
    (broken / "weights.bin").write_bytes(weights)
    build = built(broken, ("cc", "c++"), "-w")
    expect("WRONG" in tool(build / "self_test", code=1), "other weights were not noticed")
    shutil.copy(folder / "weights.bin", broken)
    expect("WRONG" not in tool(build / "self_test"), "the right weights are right again")


def runs_only_if_asked(scratch, bundle):
    """A bundle's objects are code that others may have made, so `export` loads them only with --run. The self-test passes with and without
    --run."""
    for flags in [], ["--run"]:
        loaded = scratch.root / f"loaded{len(flags)}"
        scratch.environment.update(LD_DEBUG="files", LD_DEBUG_OUTPUT=str(loaded))
        scratch.run("warploom", "export", bundle, "--out", "loading", *flags)
        del scratch.environment["LD_DEBUG"], scratch.environment["LD_DEBUG_OUTPUT"]
        log = "".join(path.read_text(errors="replace") for path in scratch.root.glob(f"{loaded.name}.*"))
        expect("libc.so" in log, "the linker's log is empty")
        expect(("kernels/wl_" in log) == bool(flags), f"export {flags}: kernels were {'not ' if flags else ''}loaded")
        expect("ok y" in tool(built(scratch.root / "loading", ("cc", "c++")) / "self_test"), flags)


def refused(scratch, store):
    (scratch.root / "softmax.graph").write_text(graphs.SOFTMAX)
    scratch.run("warploom", "tune", "softmax.graph", "--store", store, "--trials", 1, "--out", "softmax")
    mine = scratch.root / "mine"
    mine.mkdir()
    (mine / "kept").write_text("text")
    said = scratch.run("warploom", "export", "softmax", "--out", "mine", expect=2).err
    expect("mine exists and is not an export" in said and (mine / "kept").read_text() == "text", said)
    said = scratch.run("warploom", "export", "nothing", "--out", "new", expect=2).err
    expect("nothing" in said and not (scratch.root / "new").exists(), said)
    said = scratch.run("warploom", "export", "softmax", "--out", "new", "--name", "a-b", expect=2).err
    expect("--name a-b" in said and "a_b is" in said, said)
    scratch.run("warploom", "export", "softmax", "--out", "int")  # the export's folder is named like a keyword of C
    expect((scratch.root / "int/model_int.h").exists(), "the name of the library")
    scratch.run("warploom", "export", "softmax", "--out", "tables")  # the export's folder is named like a file that every export has
    expect((scratch.root / "tables/model_tables.h").exists(), "the name of a file of the export")
    scratch.run("warploom", "export", "softmax", "--out", "int", "--name", "again")  # a new export replaces an old one in the same folder
    expect(not (scratch.root / "int/model_int.h").exists() and json.loads((scratch.root / "int/export.json").read_text())["name"] == "again", "replaced")
    tool(built(scratch.root / "int", ("cc", "c++")) / "self_test")
    with open(next((scratch.root / "softmax/kernels").glob("*.cpp")), "a") as source:
        source.write("// changed\n")
    said = scratch.run("warploom", "export", "softmax", "--out", "new", expect=2).err
    expect("kernels/wl_" in said and "has changed" in said and not (scratch.root / "new").exists(), said)


def main():
    if has_sanitizer(BIN / "warploom"):
        skip("kernels are the same under a sanitizer")
    with Scratch() as scratch:
        store = scratch.root / "s.db"
        called_from_c(scratch, store)
        refused(scratch, store)
        (scratch.root / "layer.graph").write_text(graphs.SOFTMAX_MATMUL)
        scratch.run("warploom", "tune", "layer.graph", "--weight", "w", "--store", store, "--trials", 4, "--out", "layer")
        scratch.run("warploom", "export", "layer", "--out", "exported")
        for compiler in [("gcc", "g++"), ("clang", "clang++")] if WHOLE or shutil.which("clang++") else [("gcc", "g++")]:
            build = built(scratch.root / "exported", compiler)
            expect("ok y" in tool(build / "self_test", 3), compiler)
        self_test_finds(scratch, scratch.root / "exported")
        runs_only_if_asked(scratch, scratch.root / "layer")


if __name__ == "__main__":
    main()
