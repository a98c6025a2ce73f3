#!/usr/bin/env python3
"""`warploom export` of kernels for a GPU, on fake drivers (tests/fake_gpu) whose NVRTC makes code that runs on a simulated GPU. The sources
build with gcc and clang without a warning, from the exported folder alone; the self-test passes, and finds wrong weights; a caller in C
queues calls in a stream; messages say what is missing. (tests/emulated/export_test.py does the same for AMD's GPUs.)"""

import shutil

from exported import STRICT, built
from fakes import FAKE
from harness import BIN, Scratch, expect, has_sanitizer, skip, tool

# A graph of two kernels with an intermediate value between them. One output is an input, and another output occurs twice.
GRAPH = """graph {
  %0 = input "x" : f32[32,200] normal(0,1)
  %1 = input "w" : f32[200] normal(0,1)
  %2 = reduce_max %0 axes=[1] : f32[32]
  %3 = broadcast %2 dims=[0] : f32[32,200]
  %4 = sub %0 %3 : f32[32,200]
  %5 = exp %4 : f32[32,200]
  %6 = reduce_sum %5 axes=[0] : f32[200]
  %7 = mul %6 %1 : f32[200]
  output "y" %7
  output "x again" %0
  output "y again" %7
}
"""
CALLER = """
#include <stdio.h>
#include "two.h"

int main(int argc, char** argv) {
  const char* error = "";
  const void* inputs[TWO_INPUTS] = {(char*)1};
  void* outputs[TWO_OUTPUTS] = {0};
  two* model = two_create(argv[1], argc - 2, &error);
  if (model == NULL) return puts(error), 3;
  puts(two_run(model, inputs, outputs, NULL));
  two_destroy(model);
  return 0;
}
"""


def on_fakes(program, *arguments, code=0, **variables):
    variables = {"LD_LIBRARY_PATH": FAKE, **variables}
    return tool("env", *(f"{name}={value}" for name, value in variables.items()), program, *arguments, code=code)


def called(folder, build):
    (folder / "caller.c").write_text(CALLER)
    tool("cc", "-std=c11", *STRICT.split(), "-c", folder / "caller.c", "-I", folder, "-o", folder / "caller.o")
    tool("c++", folder / "caller.o", build / "libtwo.a", "-ldl", "-o", folder / "caller")
    weights = folder / "weights.bin"
    expect("an input does not begin at a multiple of 64 bytes" in on_fakes(folder / "caller", weights), "an address")
    expect("of another model" in on_fakes(folder / "caller", folder / "two.h", code=3), "a file of other bytes")
    absent = on_fakes(folder / "caller", weights, code=3, WARPLOOM_FAKE_ABSENT=1)
    expect("looking for devices" in absent, absent)
    short = on_fakes(folder / "caller", weights, code=3, WARPLOOM_FAKE_MEMORY=64)
    expect("allocating" in short and "OUT_OF_MEMORY" in short, short)
    expect("NVIDIA's driver is not installed: there is no libcuda.so.1" in tool(folder / "caller", weights, code=3), "no driver")


def main():
    if has_sanitizer(BIN / "warploom"):
        skip("the exported program is the same under a sanitizer")
    with Scratch() as scratch:
        scratch.environment["LD_LIBRARY_PATH"] = str(FAKE)
        (scratch.root / "two.graph").write_text(GRAPH)
        scratch.run("warploom", "tune", "two.graph", "--weight", "w", "--target", "cuda:sm_90a", "--trials", 2, "--out", "tuned")
        scratch.run("warploom", "export", "tuned", "--out", "two")
        folder = scratch.root / "two"
        clang = [("clang", "clang++")] if shutil.which("clang++") else []
        for compiler in [*clang, ("gcc", "g++")]:
            build = built(folder, compiler, environment=[f"LD_LIBRARY_PATH={FAKE}"])
            said = on_fakes(build / "self_test", 3)
            expect(said.count("ok ") == 3 and "ms a run" in said, said)
        called(folder, build)
        weights = bytearray((folder / "weights.bin").read_bytes())
        weights[: len(weights) // 2] = bytes(len(weights) // 2)
        (folder / "weights.bin").write_bytes(weights)
        said = on_fakes(build / "self_test", code=1)
        expect("WRONG y:" in said and "ok x again" in said, said)
        scratch.environment["WARPLOOM_FAKE_ABSENT"] = "1"
        said = scratch.run("warploom", "export", "tuned", "--out", "new", "--run", expect=4).err
        expect("cuda:sm_90a" in said and not (scratch.root / "new").exists(), said)
        scratch.run("warploom", "export", "tuned", "--out", "new")  # without --run no device is needed


if __name__ == "__main__":
    main()
