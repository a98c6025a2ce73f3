"""The commands of deploy/README.md, so that tests run what the page says. tests/fleet/documented_test.py fails on a command that no test asks for.

A command is a line of an indented block, with the lines that it is continued on and without its comment; or what stands between
backquotes, begins with the name of a program and has two more words. A block of YAML is one piece of text, which begins with its first line."""

import os
import re
import subprocess

from harness import BIN, SOURCE, expect, show

PAGE = SOURCE / "deploy/README.md"
PROGRAMS = {"warploom", "warploomd", "warploom-worker", "make", "promtool", "systemctl", "kubectl", "sbatch", "buildah", "apt-get"}
# These need what no test has: they set up a GPU of the machine.
OF_GPUS = {"nvidia-smi", "rocm-smi"}


def in_blocks(text):
    for block in re.findall(r"(?:^    .*\n)+(?:\n(?:^    .*\n)+)*", text, re.MULTILINE):
        lines = [line[4:] for line in block.splitlines()]
        if re.fullmatch(r"\w+:", lines[0]):
            yield "\n".join(lines)
            continue
        for line in re.sub(r" \\\n\s*", " ", "\n".join(lines)).splitlines():
            command = re.sub(r"(^|\s)#\s.*$", "", line).strip()
            if command:
                yield command


def in_sentences(text):
    for command in re.findall(r"`([^`\n]+)`", text):
        words = command.split()
        if words[0] in PROGRAMS | OF_GPUS and len(words) > 2:
            yield command


def commands():
    """Every command of the page, once, in the order of the page."""
    text = PAGE.read_text()
    return list(dict.fromkeys([*in_blocks(text), *in_sentences(text)]))


def documented(beginning, changes=None):
    """The one command of the page that begins so. Every key of `changes` must be in it, and is replaced by its value."""
    found = [command for command in commands() if command.startswith(beginning)]
    expect(len(found) == 1, f"{len(found)} commands of {PAGE.name} begin with {beginning!r}: {found}")
    command = found[0]
    for old, new in (changes or {}).items():
        expect(old in command, f"{old!r} is not in the command {command!r}")
        command = command.replace(old, str(new))
    return command


def at_hand(scratch):
    """Lets commands find the folder deploy/ where they run, and returns an environment whose PATH has our programs."""
    link = scratch.root / "deploy"
    if not link.is_symlink():
        link.symlink_to(SOURCE / "deploy")
    return dict(scratch.environment, PATH=f"{BIN}:{scratch.environment['PATH']}:/usr/sbin:/sbin")


def shell(scratch, text, environment=None, code=0):
    """Runs a command of the page in the test's folder and returns what it did. Fails unless it ends with the exit code."""
    done = subprocess.run(
        ["bash", "-ec", text], cwd=scratch.root, env=dict(at_hand(scratch), **(environment or {})), capture_output=True, text=True, timeout=900
    )
    expect(done.returncode == code, f"{text}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done


def start(scratch, text, name):
    """Starts a command of the page that goes on; its output goes to NAME.log."""
    environment = at_hand(scratch)
    return scratch.start("/usr/bin/env", f"PATH={environment['PATH']}", "bash", "-ec", f"exec {text}", name=name)
