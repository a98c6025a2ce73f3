#!/usr/bin/env python3
"""Tests sizes.py on temporary trees: it names everything that is too large and nothing else, and also exceptions that are not needed."""

import unittest

import tree

BODY = "  f(1);\n"


def run(sources):
    return tree.run_on("sizes.py", sources)


class Sizes(unittest.TestCase):
    def finds(self, sources, message):
        code, printed = run(sources)
        self.assertEqual(code, 1, printed)
        self.assertIn(message, printed)

    def passes(self, sources):
        code, printed = run(sources)
        self.assertEqual(code, 0, printed)

    def test_files(self):
        self.passes({"a/b.h": "\n" * 400})
        self.finds({"a/b.h": "\n" * 401}, "a/b.h: 401 lines")

    def test_folders(self):
        self.passes({f"a/{i}.txt": "" for i in range(30)})
        self.finds({f"a/{i}.txt": "" for i in range(31)}, "a: 31 files")

    def test_functions(self):
        self.passes({"a.cpp": "int g() {\n" + BODY * 78 + "}\n"})
        self.finds({"a.cpp": "// {\nint g() {\n" + BODY * 79 + "}\n"}, "a.cpp:2: g has 81 lines")
        self.finds({"a.h": "namespace n {\nstruct A : B {\n int g(int x) const {\n" + BODY * 79 + " }\n};\n}\n"}, "a.h:3: g has 81 lines")
        self.finds({"a.cpp": "A::A(int x)\n    : y_(x), z_{x} {\n" + BODY * 80 + "}\n"}, "lines, at most 80")
        self.finds({"a.cpp": 'auto s = "{";\nauto A::h() -> int {\n  if (x) {\n' + BODY * 79 + "  }\n}\n"}, "A::h has 83 lines")
        self.finds({"a.py": "class A:\n  def g():\n" + "    f()\n" * 80}, "a.py:2: g has 81 lines")

    def test_what_is_no_function(self):
        self.passes({"a.cpp": "constexpr Row kRows[] = {\n" + "  {1, f(2)},\n" * 200 + "};\n"})
        self.passes({"a.h": "class A {\n" + "  void g() { f(1); }\n" * 200 + "};\n"})
        self.passes({"tests/a.cpp": "TEST(A, B) {\n" + BODY * 200 + "}\n"})

    def test_exceptions(self):
        long = {"a/b.h": "\n" * 401}
        self.passes({**long, "tests/checks/too_large.txt": "# why\nfile a/b.h\n"})
        self.finds({"tests/checks/too_large.txt": "file a/b.h\n"}, "'file a/b.h' is no longer needed")


if __name__ == "__main__":
    unittest.main()
