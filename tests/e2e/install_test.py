#!/usr/bin/env python3
"""The files of `make install` are enough for another project: CMake and pkg-config find the package, the examples build with only the
installed headers and library, and they run a bundle that the installed programs made."""

import os
import shutil
import subprocess

import graphs
from harness import BIN, SOURCE, Scratch, expect, has_sanitizer, skip, tool

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(other LANGUAGES C CXX)
find_package(warploom 0.1 REQUIRED)
find_package(Threads REQUIRED)
add_executable(run_model run_model.cpp)
add_executable(serve serve.c)
add_executable(fetch fetch.c)
target_link_libraries(fetch PRIVATE warploom::warploom)
target_link_libraries(run_model PRIVATE warploom::warploom)
target_link_libraries(serve PRIVATE warploom::warploom Threads::Threads)
"""


def compiled_by_pkg_config(prefix, libraries, folder, bundle):
    environment = os.environ | {"PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "warploom"], capture_output=True, text=True, env=environment, check=True)
    tool("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", folder / "serve.c", "-o", folder / "served", *flags.stdout.split(), "-lpthread")
    done = subprocess.run([folder / "served", bundle, "1", "10"], capture_output=True, text=True, timeout=60,
                          env={"LD_LIBRARY_PATH": str(libraries)})  # fmt: skip
    expect("10 requests" in done.stdout, done.stdout + done.stderr)


def completed(script, line):
    """Returns the completions that bash offers for a command line with the script."""
    ask = 'source "$1"; COMP_WORDS=($2 "$3"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _warploom; printf "%s\\n" "${COMPREPLY[@]}"'
    words, _, last = line.rpartition(" ")
    return tool("bash", "-c", ask, "bash", script, words, last).split()


def described_as_installed(share):
    script = share / "bash-completion/completions/warploom"
    expect(completed(script, "warploom tun") == ["tune"], "commands")
    expect({"run", "report", "revoke", "reverify", "records"} == set(completed(script, "warploom r")), "several commands")
    expect(completed(script, "warploom tune --tri") == ["--trials"], "options")
    expect(completed(script, "warploom tune m.onnx --measure c") == ["cold"], "values")
    expect(completed(script, f"warploom tune {script.parent}/warp") == [str(script)], "files")
    expect(completed(script, f"warploom run --weights {script.parent}/warp") == [str(script)], "files of an option")
    pages = sorted((share / "man/man1").glob("warploom*.1"))
    expect(len(pages) > 20 and share / "man/man1/warploom-tune.1" in pages, f"{pages}")
    for page in pages:
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, text=True, timeout=60)
        expect(done.returncode == 0 and not done.stderr, f"{page.name}: {done.stderr}")
    expect("candidates per distinct group" in done_text(share / "man/man1/warploom-tune.1"), "the page of tune lacks its options")


def done_text(page):
    return " ".join(tool("groff", "-man", "-Tascii", "-P-cbou", page).split())


def main():
    if has_sanitizer(BIN / "warploom"):
        skip("a sanitizer's library is of no use to others")
    with Scratch() as scratch:
        prefix, other = scratch.root / "prefix", scratch.root / "other"
        tool("cmake", "--install", BIN.parent, "--prefix", prefix)
        other.mkdir()
        (other / "CMakeLists.txt").write_text(PROJECT)
        for example in "run_model.cpp", "serve.c", "fetch.c":
            shutil.copy(SOURCE / "examples" / example, other)
        tool("cmake", "-G", "Ninja", "-S", other, "-B", other / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        tool("cmake", "--build", other / "build")
        reached = (other / "build/.ninja_deps").read_bytes()
        expect(str(prefix).encode() in reached and str(SOURCE).encode() not in reached, "headers of the source tree were used")

        graph = scratch.root / "g.graph"
        graph.write_text(graphs.SOFTMAX)
        bundle, store = scratch.root / "bundle", scratch.root / "s.db"
        tool(prefix / "bin/warploom", "tune", graph, "--trials", 1, "--store", store, "--out", bundle)
        expect("output " in tool(other / "build/run_model", bundle), "the example said nothing of the outputs")
        served = tool(other / "build/serve", bundle, 4, 500)
        expect(served.count("500 requests") == 4, served)

        # The example fetch makes the installed library load its plugin for calls to a coordinator. It reports that no coordinator answers.
        asked = subprocess.run([other / "build/fetch", graph, f"unix:{scratch.path('none')}"], capture_output=True, text=True, timeout=120,
                               env=scratch.environment)  # fmt: skip
        expect(asked.returncode == 2 and "no coordinator answers" in asked.stderr, asked.stderr)

        described_as_installed(prefix / "share")
        library = next(prefix.glob("lib*/**/libwarploom.so"))
        needed = tool("readelf", "-d", library)
        for other_library in "grpc", "protobuf", "onnx":
            expect(f"lib{other_library}" not in needed, f"the library needs {other_library}:\n{needed}")
        symbols = [line.split()[-1] for line in tool("nm", "-D", "--defined-only", library).splitlines()]
        foreign = [symbol for symbol in symbols if not symbol.startswith(("warploom_", "WARPLOOM_"))]
        expect(not foreign, f"symbols that are no part of the interface: {foreign[:5]}")
        compiled_by_pkg_config(prefix, library.parent, other, bundle)


if __name__ == "__main__":
    main()
