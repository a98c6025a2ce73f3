"""Reads the commands of deploy/README.md, so that tests run them as the page has them. tests/fleet/documented_test.py fails on a command that
no test asks for.

A command is a line of an indented block, with its continuation lines and without its comment; or text between backquotes that begins with
the name of a program and has at least two more words. A block of YAML is one piece of text, which is found by its first line."""

import os
import re
import subprocess

from harness import BIN, SOURCE, expect, show

PAGE = SOURCE / "deploy/README.md"
PROGRAMS = {"warploom", "warploomd", "warploom-worker", "make", "promtool", "systemctl", "kubectl", "sbatch", "buildah", "apt-get"}
# Programs whose commands no test can run, since they change settings of the machine's GPU.
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
    """Returns every command of the page once: first those of indented blocks, then those of sentences, in the order of the page."""
    text = PAGE.read_text()
    return list(dict.fromkeys([*in_blocks(text), *in_sentences(text)]))


def documented(beginning, changes=None):
    """Returns the only command of the page that begins so. Every key of `changes` must be in the command, and is replaced by its value."""
    found = [command for command in commands() if command.startswith(beginning)]
    expect(len(found) == 1, f"{len(found)} commands of {PAGE.name} begin with {beginning!r}: {found}")
    command = found[0]
    for old, new in (changes or {}).items():
        expect(old in command, f"{old!r} is not in the command {command!r}")
        command = command.replace(old, str(new))
    return command


def at_hand(scratch):
    """Links deploy/ into the test's folder, where commands run, and returns an environment whose PATH has the programs of the build."""
    link = scratch.root / "deploy"
    if not link.is_symlink():
        link.symlink_to(SOURCE / "deploy")
    return dict(scratch.environment, PATH=f"{BIN}:{scratch.environment['PATH']}:/usr/sbin:/sbin")


def shell(scratch, text, environment=None, code=0):
    """Runs a command of the page in the test's folder, and returns its subprocess.CompletedProcess. Fails unless the exit code is
    `code`."""
    done = subprocess.run(
        ["bash", "-ec", text], cwd=scratch.root, env=dict(at_hand(scratch), **(environment or {})), capture_output=True, text=True, timeout=900
    )
    expect(done.returncode == code, f"{text}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done


def start(scratch, text, name):
    """Starts a command of the page without waiting for its end; its output goes to NAME.log."""
    environment = at_hand(scratch)
    return scratch.start("/usr/bin/env", f"PATH={environment['PATH']}", "bash", "-ec", f"exec {text}", name=name)
