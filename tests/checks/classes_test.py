#!/usr/bin/env python3
"""Tests classes.py on temporary trees: what it counts, and that listed classes may only shrink."""

import unittest

import tree

LISTED = "tests/checks/large_classes.txt"


def run(functions, members, listed=None, more=""):
    body = "".join(f"  int f{i}(int x) const {{ return x; }}\n" for i in range(functions))
    body += "".join(f"  std::map<int, std::function<void(int)>> m{i}_;\n" for i in range(members))
    sources = {"compiler/a.h": "class A : public B<C> {\n public:\n" + body + more + "};\n"}
    if listed is not None:
        sources[LISTED] = listed
    return tree.run_on("classes.py", sources)


class Classes(unittest.TestCase):
    def test_limits(self):
        self.assertEqual(run(25, 20)[0], 0)
        self.assertIn("A has 26 functions and 20 members; at most", run(26, 20)[1])
        self.assertIn("A has 25 functions and 21 members; at most", run(25, 21)[1])

    def test_what_counts(self):
        more = "  enum class E { kA, kB };\n  using T = int;\n  struct S {\n    int a, b;\n    void g();\n  };\n  friend class D;\n"
        self.assertEqual(run(25, 20, more=more)[0], 0)
        self.assertIn("21 members", run(25, 19, more="  int a_ = 0, b_ = f(1, 2);\n")[1])
        self.assertIn("26 functions", run(25, 19, more="  A& operator=(const A&) = delete;\n")[1])
        self.assertIn("26 functions", run(25, 19, more="  A(int x) : m0_{x} { if (x) { g(); } }\n")[1])

    def test_listed_classes_shrink(self):
        self.assertEqual(run(30, 20, "# why\ncompiler/a.h A 30 20\n")[0], 0)
        self.assertIn("more than 29 and 20 before", run(30, 20, "compiler/a.h A 29 20\n")[1])
        self.assertIn("write that into", run(30, 20, "compiler/a.h A 31 20\n")[1])
        self.assertIn("is no longer needed", run(20, 20, "compiler/a.h A 31 20\n")[1])


if __name__ == "__main__":
    unittest.main()
