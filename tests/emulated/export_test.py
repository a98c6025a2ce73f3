#!/usr/bin/env python3
"""export_test.py ARCHITECTURE: `warploom export` of kernels for an AMD GPU. The folder builds with clang alone, and its self-test passes on
the emulator."""

import sys

import emulator
import tune_test
from harness import Scratch, expect, tool

GRAPH = """graph {
  %0 = input "x" : f32[8,64] normal(0,1)
  %1 = input "w" : f32[64,16] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[8,16]
  %3 = tanh %2 : f32[8,16]
  output "y" %3
}
"""


def main(architecture):
    emulator.make_ready()
    with Scratch() as scratch:
        tools = tune_test.prepare(scratch)

        def run(*program):
            return tune_test.started(scratch, architecture, "forward", *program)

        (scratch.root / "product.graph").write_text(GRAPH)
        run(tools / "warploom", "tune", "product.graph", "--weight", "w", "--target", f"hip:{architecture}", "--trials", 2, "--out", "tuned")
        run(tools / "warploom", "export", "tuned", "--out", "product")
        tool("cmake", "-G", "Ninja", "-S", scratch.root / "product", "-B", scratch.root / "build", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
        run("cmake", "--build", "build")
        said = run("build/self_test", 2)
        expect("ok y" in said and "ms a run" in said, said)
        print(said)


if __name__ == "__main__":
    main(*sys.argv[1:])
