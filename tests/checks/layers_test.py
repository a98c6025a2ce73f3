#!/usr/bin/env python3
"""Breaks each rule of layers.py once in a temporary tree; layers.py must report the file, the line and the reason."""

import unittest

import tree

def run(sources, layers=None):
    rules = layers or (tree.ROOT / "tests/layers.txt").read_text()
    return tree.run_on("layers.py", {**sources, "layers.txt": rules}, "--layers", "ROOT/layers.txt")


class Layers(unittest.TestCase):
    def forbids(self, file, text, message):
        # layers.py reports folders of its rules that do not exist, so each of these folders gets a header.
        there = {f"{folder}/x.h": "" for folder in ("compiler/base", "server", "worker", "compiler/domain", "client", "proto")}
        code, printed = run({**there, file: "\n" + text + "\n"})
        self.assertEqual(code, 1, printed)
        self.assertIn(f"{file}:2: ", printed)
        self.assertIn(message, printed)

    def allows(self, file, text):
        code, printed = run({"compiler/base/x.h": "", "server/x.h": "", file: text + "\n"})
        self.assertEqual(code, 0, printed)

    def test_types_of_one_name(self):
        code, printed = run({"client/a.h": "struct Pool {\n};\n", "server/b.h": "\nclass Pool final {\n};\n"})
        self.assertEqual(code, 1, printed)
        self.assertIn("server/b.h:2: Pool: client/a.h has a type of that name", printed)

    def test_circles(self):
        headers = {"tests/a.h": '#include "tests/b.h"\n', "tests/b.h": '\n#include "b.h"\n#include "a.h"\n'}
        code, printed = run(headers)
        self.assertEqual(code, 1, printed)
        self.assertIn("tests/a.h:1 includes tests/b.h, tests/b.h:3 includes tests/a.h", printed)
        folders = {"bench/a.h": "", "bench/b.cpp": '#include "bench/x/x.h"\n', "bench/x/x.h": '#include "bench/a.h"\n'}
        code, printed = run(folders)
        self.assertEqual(code, 1, printed)
        self.assertIn("bench includes itself in a circle: bench/b.cpp:1 includes bench/x, bench/x/x.h:1 includes bench", printed)

    def test_circles_of_imports(self):
        modules = {"bench/a.py": "import os\nimport b\n", "bench/b.py": "def f():\n    from a import g\n"}
        code, printed = run({"compiler/base/x.h": "", **modules})
        self.assertEqual(code, 1, printed)
        self.assertIn("bench/a.py imports itself in a circle: bench/a.py:2 imports bench/b.py, bench/b.py:2 imports bench/a.py", printed)
        package = {"client/p/__init__.py": "import y\n", "client/p/q/__init__.py": "", "client/p/q/x.py": "from .. import y\n", "client/p/y.py": "from .q.x import z\n"}
        code, printed = run({"compiler/base/x.h": "", **package})
        self.assertIn("client/p/q/x.py imports itself in a circle", printed)

    def test_forbidden_edges(self):
        for file, header, edge in (
            ("compiler/base/a.h", "compiler/domain/x.h", "compiler/base -> compiler/domain"),
            ("compiler/ir/a.cpp", "server/x.h", "compiler/ir -> server"),
            ("worker/a.cpp", "compiler/domain/x.h", "worker -> compiler/domain"),
            ("server/a.cpp", "worker/x.h", "server -> worker"),
            ("client/cli/cli.cpp", "server/x.h", "client/cli -> server"),
            ("runtime/a.cpp", "proto/x.h", "runtime -> proto"),
        ):
            self.forbids(file, f'#include "{header}"', edge)

    def test_only_the_composition_root_joins_the_processes(self):
        self.allows("client/warploom.cpp", '#include "server/x.h"')

    def test_own_folder_and_allowed_edge(self):
        self.allows("compiler/ir/a.h", '#include "compiler/ir/b.h"\n#include "compiler/base/x.h"')

    def test_libraries_have_one_speaker(self):
        for file, header in (
            ("server/jobs.cpp", "<sqlite3.h>"),
            ("server/store/records.cpp", "<sqlite3.h>"),
            ("compiler/ir/a.cpp", "<onnx/onnx-ml.pb.h>"),
            ("compiler/domain/a.cpp", "<google/protobuf/message.h>"),
            ("runtime/a.cpp", '"warploom/v1/job.pb.h"'),
            ("worker/agent.cpp", "<dlfcn.h>"),
            ("client/cli/a.cpp", "<cuda.h>"),
        ):
            self.forbids(file, f"#include {header}", "may include")
        self.allows("server/store/sql/sql.cpp", "#include <sqlite3.h>")
        self.allows("worker/drivers/cpu.cpp", "#include <dlfcn.h>")
        self.allows("worker/agent.cpp", "#include <grpcpp/grpcpp.h>")

    def test_the_compiler_is_pure(self):
        for header in ("thread", "chrono", "random", "fstream", "mutex", "unistd.h", "sys/mman.h"):
            self.forbids("compiler/search/a.cpp", f"#include <{header}>", "nothing under compiler may include")
        for code in ('auto x = std::getenv("A");', "thread_local int x = 0;", "int x = rand();"):
            self.forbids("compiler/search/a.cpp", code, "pure function")
        self.allows("compiler/search/a.cpp", '// getenv\nauto x = "getenv";  /* thread_local */\nint random_rank(int);')

    def test_includes_are_written_from_the_root(self):
        self.forbids("compiler/ir/a.cpp", '#include "b.h"', "from the root")
        self.forbids("compiler/ir/a.cpp", '#include "../base/x.h"', "from the root")

    def test_unknown_folder_has_no_edges(self):
        self.forbids("gadgets/a.cpp", '#include "server/x.h"', "gadgets/a.cpp -> server")

    def test_a_cycle_in_the_table_is_an_error(self):
        code, printed = run({}, layers="a: b\nb: c\nc: a\n")
        self.assertEqual(code, 1)
        self.assertIn("cycle a -> b -> c -> a", printed)


if __name__ == "__main__":
    unittest.main()
