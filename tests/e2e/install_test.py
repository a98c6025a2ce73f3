#!/usr/bin/env python3
"""What `make install` installs is enough: another project finds the package, builds examples/run_model.cpp with the installed headers
and library alone, and runs a bundle that the installed programs made."""

import shutil
import subprocess

import graphs
from harness import BIN, SOURCE, Scratch, expect, skip

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(other LANGUAGES CXX)
find_package(warploom 0.1 REQUIRED)
add_executable(run_model run_model.cpp)
target_link_libraries(run_model PRIVATE warploom::program)
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    expect(done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main():
    if "san.so" in run("ldd", BIN / "warploom"):
        skip("a sanitizer's library is of no use to others")
    with Scratch() as scratch:
        prefix, other = scratch.root / "prefix", scratch.root / "other"
        run("cmake", "--install", BIN.parent, "--prefix", prefix)
        other.mkdir()
        (other / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(SOURCE / "examples/run_model.cpp", other)
        run("cmake", "-G", "Ninja", "-S", other, "-B", other / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", other / "build")
        reached = (other / "build/.ninja_deps").read_bytes()
        expect(str(prefix).encode() in reached and str(SOURCE).encode() not in reached, "headers of the source tree were used")

        graph = scratch.root / "g.graph"
        graph.write_text(graphs.SOFTMAX)
        bundle, store = scratch.root / "bundle", scratch.root / "s.db"
        run(prefix / "bin/warploom", "tune", graph, "--trials", 1, "--store", store, "--out", bundle)
        expect("output " in run(other / "build/run_model", bundle), "the example said nothing of the outputs")


if __name__ == "__main__":
    main()
