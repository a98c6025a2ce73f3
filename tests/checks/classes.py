#!/usr/bin/env python3
"""Fails on a class of compiler/ that has more than 25 functions or 20 members. tests/checks/large_classes.txt lists the classes that are larger
still, with what they have: they may shrink, and the list then says so, but not grow.

classes.py [--root DIR]
"""

import argparse
import pathlib
import re
import sys

import sizes
import tree

FUNCTIONS, MEMBERS = 25, 20
LISTED = "tests/checks/large_classes.txt"
CLASS = re.compile(r"\bclass\s+(\w+)\s*(?:final\s*)?(?::[^{;()]*)?\{")
NO_MEMBER = re.compile(r"^(?:using|friend|static_assert|enum|struct|class|typedef|template\s*<[^>]*>\s*friend)\b")


def declarations(code, begin):
    """Yields the declarations of the class whose body begins at `begin`; the bodies of functions and of nested types are left out."""
    depth, text = 1, ""
    for char in code[begin:]:
        if char == "}":
            depth -= 1
            if depth == 0:
                return
            if depth == 1 and ")" in text and not text.rstrip().endswith("=") and not NO_MEMBER.match(stripped(text)):
                yield stripped(text)
                text = ""
        elif char == "{":
            depth += 1
        elif depth == 1 and char == ";":
            yield stripped(text)
            text = ""
        elif depth == 1:
            text += char


def stripped(text):
    return re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", text).strip()


def counted(code, begin):
    """Returns the numbers of functions and of members of a class."""
    functions = members = 0
    for declaration in declarations(code, begin):
        if not declaration or NO_MEMBER.match(declaration):
            continue
        plain = declaration
        while (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
            plain = shorter
        if "(" in plain.split("=")[0] or "operator" in plain:
            functions += 1
        else:
            members += 1 + re.sub(r"\([^)]*\)", "", plain).count(",")
    return functions, members


def large_classes(root):
    """Returns a dict: (file, class) -> (functions, members), of classes above a limit."""
    found = {}
    for file in tree.files("*.h", "*.cpp", root=root):
        if not file.startswith("compiler/"):
            continue
        text = (root / file).read_text(errors="replace")
        code = sizes.NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for match in CLASS.finditer(code):
            functions, members = counted(code, match.end())
            if functions > FUNCTIONS or members > MEMBERS:
                found[file, match[1]] = (functions, members)
    return found


def problems_of(found, listed):
    for key, (functions, members) in sorted(found.items()):
        what = f"{key[0]}: {key[1]} has {functions} functions and {members} members"
        if key not in listed:
            yield f"{what}; at most {FUNCTIONS} and {MEMBERS} are allowed"
        elif functions > listed[key][0] or members > listed[key][1]:
            yield f"{what}, more than {listed[key][0]} and {listed[key][1]} before: divide it by idea"
        elif (functions, members) != listed[key]:
            yield f"{what}: write that into {LISTED}"
    for key in sorted(set(listed) - set(found)):
        yield f"{LISTED}: {key[0]} {key[1]} is no longer needed: remove it"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=tree.ROOT)
    root = parser.parse_args().root
    listed = {}
    if (root / LISTED).exists():
        for line in (root / LISTED).read_text().splitlines():
            if words := line.split("#")[0].split():
                listed[words[0], words[1]] = (int(words[2]), int(words[3]))
    found = large_classes(root)
    return tree.report("classes", list(problems_of(found, listed)), len(tree.files("*.h", "*.cpp", root=root)))


if __name__ == "__main__":
    sys.exit(main())
