#!/usr/bin/env python3
"""The documents are right: every option in a command line exists, every link in a page or comment has its file and heading, and the
README's kernel and picture are what the program makes. (tests/fleet/pages_test.py runs the commands of README.md and the how-to pages.)"""

import functools
import re
import shlex
import subprocess
import sys

from harness import BIN, SOURCE, Scratch, expect, show

sys.path.insert(0, str(SOURCE / "tools"))
import site_pages

SOURCES = ("h", "cpp", "def", "proto", "sql", "py", "cmake")
PROGRAMS = ("warploom", "warploomd", "warploom-worker", "warploom-train")


@functools.cache
def help_of(scratch, *command):
    return scratch.run(*command, "--help").out


def commands_of(text):
    """Yields the command lines of a page that begin with a program of this project. Continuation lines are joined and comments removed."""
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


@functools.cache
def anchors_of(page):
    """Returns the anchors of a page's headings, in GitHub's form."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    titles = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", text, re.M))
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def check_anchor(place, page, anchor):
    if anchor and page.suffix == ".md":
        expect(anchor.removeprefix("#") in anchors_of(page), f"{place}: {page.relative_to(SOURCE)} has no heading {anchor}")


def check_comments():
    """Checks every page of docs/ that a source names, with or without #HEADING, and returns the number of such references."""
    listed = subprocess.run(["git", "ls-files", "--", *(f"*.{ending}" for ending in SOURCES)], cwd=SOURCE, capture_output=True, text=True, check=True)
    found = 0
    for name in listed.stdout.split():
        for page, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(#[\w-]+)?", (SOURCE / name).read_text()):
            expect((SOURCE / page).exists(), f"{name}: there is no {page}")
            check_anchor(name, SOURCE / page, anchor)
            found += 1
    return found


def check_readme(scratch):
    pictures = SOURCE / "docs/pictures"
    printed = scratch.run("warploom", "inspect", pictures / "softmax.graph", "--stage", "source", "--target", "cuda:sm_90").out
    shown = re.search(r"```cpp\n(.*?)```", (SOURCE / "README.md").read_text(), re.S)[1]
    expect(shown.strip() in printed, f"the README's kernel is not what inspect prints:\n{printed}")
    made = scratch.root / "softmax.svg"
    subprocess.run([sys.executable, SOURCE / "tools/readme_picture.py", "--bin", BIN, pictures / "softmax.graph", made], check=True)
    expect(made.read_text() == (pictures / "softmax.svg").read_text(), "docs/pictures/softmax.svg is not what tools/readme_picture.py makes")


def main():
    with Scratch() as scratch:
        check_readme(scratch)
        found = links = 0
        for page in site_pages.pages():
            text = page.read_text()
            for words in commands_of(text):
                check_options(scratch, page.relative_to(SOURCE), words)
                found += 1
            for link in site_pages.LINK.finditer(text):
                target = site_pages.target_of(page, link[2])  # if there is no such file, target_of() ends the program
                if target is not None:
                    check_anchor(page.relative_to(SOURCE), target, link[3])
                links += 1
        comments = check_comments()
        expect(found >= 60 and links >= 150 and comments >= 30, f"{found} commands, {links} links, {comments} pages in sources")
        print(found, "command lines,", links, "links,", comments, "pages that sources name")


if __name__ == "__main__":
    main()
