#!/usr/bin/env python3
"""The documents: every option of every command line is one that the program has, every link has a file, and what README.md says under "Tune a
model and run it" runs, line by line, as a new user would type it."""

import functools
import re
import shlex
import sys

import graphs
from harness import BIN, SOURCE, Scratch, expect, has_sanitizer, show

sys.path.insert(0, str(SOURCE / "tools"))
import site_pages

PROGRAMS = ("warploom", "warploomd", "warploom-worker", "warploom-train")


@functools.cache
def help_of(scratch, *command):
    return scratch.run(*command, "--help").out


def commands_of(text):
    """The command lines of a page that begin with a program of ours, with their continuations and without comments."""
    text = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"^(?:    |\$ )(warploom[a-z-]* .*)$", text, re.M)
    for line in lines:
        line = re.split(r"\s#\s|\s#$|\s{2,}#", line)[0]
        for part in re.split(r"\s*(?:&&|\||>>?|<|&$)\s*", line):
            words = shlex.split(part)
            if words and words[0] in PROGRAMS and len(words) > 1:
                yield words


def check_options(scratch, page, words):
    command = [words[0]]
    if len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) and re.search(rf"^\s+{words[1]}\b", help_of(scratch, words[0]), re.M):
        command.append(words[1])
    known = help_of(scratch, *command)
    for word in words[1:]:
        option = word.split("=")[0]
        if option.startswith("--"):
            expect(re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known), f"{page}: {show(words)}: there is no {option} in {command} --help")


def run_section(scratch):
    text = (SOURCE / "README.md").read_text()
    section = text.split("\n## Tune a model and run it\n")[1].split("\n## ")[0]
    (scratch.root / "model.graph").write_text(graphs.LAYER)
    ran = 0
    for words in commands_of(section):
        words = [word.replace("model.onnx", "model.graph") for word in words]
        if "--libraries" in words or "--input" in words:  # need a library, and a file of values: tests of their own
            continue
        if words[1] == "tune":
            words += ["--trials", "2"]
        scratch.run(*words)
        ran += 1
    expect(ran >= 6, f"{ran} commands ran")


def main():
    with Scratch() as scratch:
        found = links = 0
        for page in site_pages.pages():
            text = page.read_text()
            for words in commands_of(text):
                check_options(scratch, page.relative_to(SOURCE), words)
                found += 1
            for link in site_pages.LINK.finditer(text):
                site_pages.target_of(page, link[2])  # ends the program if there is no such file
                links += 1
        expect(found >= 60 and links >= 150, f"{found} commands, {links} links")
        print(found, "command lines,", links, "links")
        if not has_sanitizer(BIN / "warploom"):
            run_section(scratch)


if __name__ == "__main__":
    main()
