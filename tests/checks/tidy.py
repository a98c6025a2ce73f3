#!/usr/bin/env python3
"""Runs clang-tidy over every source of the tree and fails on any finding.

A file is checked again only when it, a header of this project that it includes directly or indirectly, its compile
command, .clang-tidy or the version of clang-tidy has changed. Clean results are stored under build/tidy; findings are not.

    tidy.py --build DIR [--jobs N] [--recent COMMITS] [--at-most FILES] [FILE...]
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Compiler options for the build's precompiled header, which clang-tidy cannot read because another compiler made it.
PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S*/cmake_pch\.hxx")
CACHE = tree.ROOT / "build" / "tidy"
# Sources in these folders are checked. Generated code and bench are not.
FOLDERS = ("compiler/", "proto/", "server/", "worker/", "client/", "runtime/", "tests/")


@functools.lru_cache(maxsize=None)
def text_of(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def reach(file, build):
    """Returns the contents of a file and of each header of this project that the file includes, directly or indirectly."""
    seen, todo = {}, [tree.ROOT / file]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen[path] = text_of(path)
        for header in INCLUDE.findall(seen[path].decode(errors="replace")):
            todo.extend(p for p in (tree.ROOT / header, build / "generated" / header) if p.is_file())
    return [content for _, content in sorted(seen.items())]


def key_of(file, command, build, version):
    digest = hashlib.sha256()
    for part in (version, text_of(tree.ROOT / ".clang-tidy"), command.encode(), *reach(file, build)):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def tidy(file, build):
    """Returns the findings in one source file."""
    # Warnings are switched off: the build reports them, and clang does not know some of g++'s warning flags.
    command = ["clang-tidy", "-p", str(build / "tidy"), "--quiet", "--extra-arg=-Wno-everything", str(tree.ROOT / file)]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    lines = [line for line in done.stdout.splitlines() if ": error: " in line or ": warning: " in line]
    return lines or [f"{file}: clang-tidy failed: {(done.stdout + done.stderr).strip()[:2000]}"]


def commands_of(build):
    """Returns a dict: source -> command that compiles this source alone, even if the build merges it with other sources. Writes the
    commands to tidy/compile_commands.json in the build folder."""
    entries = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        merged = INCLUDE.findall(path.read_text()) if path.name.startswith("unity_") else [entry["file"]]
        command = PRECOMPILED.sub("", entry["command"])
        entries += [{**entry, "file": file, "command": command.replace(entry["file"], file)} for file in merged]
    (build / "tidy").mkdir(exist_ok=True)
    (build / "tidy" / "compile_commands.json").write_text(json.dumps(entries))
    return {entry["file"]: entry["command"] for entry in entries}


def recent(commits):
    """Returns the files that the last commits or the working tree changed; None if there is no history."""
    git = ["git", "-C", str(tree.ROOT)]
    count = subprocess.run([*git, "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    if count.returncode != 0:
        return None
    back = min(commits, int(count.stdout) - 1)
    named = subprocess.run([*git, "diff", "--name-only", f"HEAD~{back}"], capture_output=True, text=True, check=True).stdout
    fresh = subprocess.run([*git, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True, check=True)
    return set(named.split()) | set(fresh.stdout.split())


def drawn(files, count):
    """Returns at most `count` of the files, always the same ones for the same commit."""
    head = subprocess.run(["git", "-C", str(tree.ROOT), "rev-parse", "HEAD"], capture_output=True).stdout
    return sorted(files, key=lambda file: hashlib.sha256(head + file.encode()).digest())[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a configured build folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--recent", type=int, metavar="COMMITS", help="only what the last commits or the working tree changed")
    parser.add_argument("--at-most", type=int, metavar="FILES",
                        help="when there are more: this many of them, others for every commit; `make lint` looks at all")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    build = options.build.resolve()
    commands = commands_of(build)
    files = options.files or tree.files("*.cpp")
    files = [f for f in files if f.startswith(FOLDERS) and str(tree.ROOT / f) in commands]
    changed = recent(options.recent) if options.recent is not None else None
    if changed is not None:
        files = [f for f in files if f in changed]
    if options.at_most is not None and len(files) > options.at_most:
        print(f"{len(files)} files to look at, {options.at_most} of them drawn by the hash of the commit")
        files = drawn(files, options.at_most)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    CACHE.mkdir(parents=True, exist_ok=True)

    def check(file):
        verdict = CACHE / key_of(file, commands[str(tree.ROOT / file)], build, version)
        if verdict.exists():
            return []
        problems = tidy(file, build)
        if not problems:
            verdict.touch()
        return problems

    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        problems = sorted({problem for found in pool.map(check, files) for problem in found})
    return tree.report("clang-tidy", problems, len(files))


if __name__ == "__main__":
    sys.exit(main())
