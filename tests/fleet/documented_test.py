#!/usr/bin/env python3
"""Every command of deploy/README.md is run by a test, which asks for the command by documented("BEGINNING")."""

import re

from documented import OF_GPUS, commands
from harness import SOURCE, expect

ASKED = re.compile(r'\bdocumented\(\s*"((?:[^"\\]|\\.)+)"')


def asked():
    """Returns a dict: beginning of a command that a test asks for -> files of the tests that do."""
    found = {}
    for path in sorted((SOURCE / "tests").rglob("*.py")):
        if path.name == "documented_test.py":
            continue
        for beginning in ASKED.findall(path.read_text()):
            found.setdefault(beginning, []).append(path.name)
    return found


def main():
    page, wanted = commands(), asked()
    for beginning, files in wanted.items():
        fit = [command for command in page if command.startswith(beginning)]
        expect(len(fit) == 1, f"{files} ask for {beginning!r}, and {len(fit)} commands of the page begin so: {fit}")
    runs = [command for command in page if command.split()[0] not in OF_GPUS]
    left = [command for command in runs if not any(command.startswith(beginning) for beginning in wanted)]
    expect(not left, "no test runs these commands of deploy/README.md:\n  " + "\n  ".join(left))
    print(f"{len(runs)} commands, each run by a test; {len(page) - len(runs)} set up a GPU and are run by none")


if __name__ == "__main__":
    main()
