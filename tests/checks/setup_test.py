#!/usr/bin/env python3
"""tools/setup.sh installs missing packages. Of alternatives "A | B" it installs the first that the system's package sources have. For a
build it installs fewer packages than for tests. apt and dpkg are faked."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STANDINS = {
    "dpkg-query": 'for p in $INSTALLED; do echo "installed $p"; done',
    "apt-cache": 'case " $KNOWN " in *" $2 "*) exit 0 ;; esac; exit 100',
    "apt-get": '[ "$1" = update ] || echo "$@" >> "$LOG"',
    "id": "echo 0",
}


def alternatives(*files):
    """Returns a list for each line of these files: the names of the packages that are alternatives to each other."""
    lines = (line.split("#")[0].strip() for file in files for line in (ROOT / "tools" / file).read_text().splitlines())
    return [[name.strip() for name in line.split("|")] for line in lines if line]


class Setup(unittest.TestCase):
    def installs(self, installed, known, part="packages"):
        """Returns the packages that `setup.sh PART` installs if apt knows the packages `known` and the packages `installed` are installed
        already."""
        with tempfile.TemporaryDirectory() as folder:
            for name, body in STANDINS.items():
                file = pathlib.Path(folder) / name
                file.write_text(f"#!/bin/sh\n{body}\n")
                file.chmod(0o755)
            log = pathlib.Path(folder) / "log"
            environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LOG=str(log), INSTALLED=" ".join(installed), KNOWN=" ".join(known))
            subprocess.run([str(ROOT / "tools/setup.sh"), part], env=environment, check=True, capture_output=True, timeout=60)
            return [name for name in log.read_text().split() if not name.startswith("-") and name != "install"] if log.exists() else []

    def setUp(self):
        every = alternatives("packages.txt", "packages-test.txt")
        self.one_name = [names[0] for names in every if len(names) == 1]
        self.several = [names for names in every if len(names) > 1]
        self.assertTrue(self.several)

    def test_nothing_is_missing(self):
        for which in 0, -1:
            self.assertEqual(self.installs(self.one_name + [names[which] for names in self.several], []), [])

    def test_the_first_that_is_known(self):
        first, last = ([names[which] for names in self.several] for which in (0, -1))
        self.assertEqual(sorted(self.installs(self.one_name, first + last)), sorted(first))
        self.assertEqual(sorted(self.installs(self.one_name, last)), sorted(last))

    def test_one_that_nothing_knows_is_asked_for(self):
        self.assertEqual(sorted(self.installs(self.one_name, [])), sorted(names[0] for names in self.several))

    def test_all_is_missing(self):
        self.assertEqual(sorted(self.installs([], self.one_name + self.several[0])), sorted(self.one_name + [names[0] for names in self.several]))

    def test_a_build_needs_none_of_the_tests_packages(self):
        self.assertEqual(sorted(self.installs([], [], "build")), sorted(names[0] for names in alternatives("packages.txt")))


if __name__ == "__main__":
    sys.exit(unittest.main())
