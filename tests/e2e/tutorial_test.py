#!/usr/bin/env python3
"""Runs every command and program of docs/tutorial.md in order, as a new user would."""

import os
import re
import subprocess
import sys

from harness import BIN, PATIENCE, SOURCE, Scratch, expect, kill_group, python_package

# The Python with PyTorch that `tools/setup.sh peers` installs. It runs the tutorial's programs that are marked `python torch`; if it is
# missing, these programs are left out.
PEERS = SOURCE / "build/venv-peers/bin/python"


def run(scratch, command, environment):
    """Runs a command to its end, and then ends the processes that it left in the background. Its output goes to a file and not to a pipe,
    which such processes would keep open."""
    with open(scratch.root / "said", "w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=scratch.root, env=environment,
                                   start_new_session=True)  # fmt: skip
        try:
            code = process.wait(600 * PATIENCE)
        except subprocess.TimeoutExpired:
            code = "none, since it did not end"
        finally:
            kill_group(process)
        said.seek(0)
        expect(code == 0, f"{command}: exit code {code}\n{said.read()[-3000:]}")


def main():
    package = python_package()
    blocks = re.findall(r"^```(console|python torch|python)\n(.*?)^```$", (SOURCE / "docs/tutorial.md").read_text(), re.M | re.S)
    expect({kind for kind, _ in blocks} == {"console", "python torch", "python"} and len(blocks) >= 8, f"{len(blocks)} blocks")
    with Scratch() as scratch:
        environment = scratch.environment | {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(package)}
        for number, (kind, text) in enumerate(blocks):
            if kind == "console":
                lines = [line.removeprefix("$ ") for line in text.splitlines()]
                expect(all(line.startswith("$ ") for line in text.splitlines()), f"a line of block {number} is no command:\n{text}")
                run(scratch, ["bash", "-e", "-c", "\n".join(lines)], environment)
                continue
            python = PEERS if kind == "python torch" else sys.executable
            if kind == "python torch" and not PEERS.exists():
                print("left out: there is no PyTorch")
                continue
            program = scratch.root / f"program{number}.py"
            program.write_text(text)
            run(scratch, [python, program], environment)
        for made in "tuned", "again", "fetched", "tuned-by-the-team", "tuned.html", "mlp/build/self_test":
            expect((scratch.root / made).exists(), f"{made} was not made")


if __name__ == "__main__":
    main()
