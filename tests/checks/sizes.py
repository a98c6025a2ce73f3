#!/usr/bin/env python3
"""Fails on a file of more than 400 lines, a folder of more than 30 files and a function of more than 80 lines (functions of tests may be
longer). tests/checks/too_large.txt lists the exceptions; an exception that is no longer needed is a problem too.

sizes.py [--root DIR]
"""

import argparse
import ast
import collections
import pathlib
import re
import sys

import tree

LINES, FILES, FUNCTION = 400, 30, 80
SOURCES = ("*.h", "*.cpp", "*.py", "*.sh", "*.cmake", "*.proto", "*.def", "Makefile")
EXCEPTIONS = "tests/checks/too_large.txt"
# Matches text that is not code: comments, literals, and preprocessor directives with their continuation lines.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
SCOPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:inline\s+)?(?:namespace|extern|struct|class|union)\b(?!.*\)\s*(?:const|noexcept|override|final|->|:|$))", re.DOTALL)
STATEMENT = re.compile(r"^(?:if|for|while|switch|catch|do|else|try|return|enum)\b")
NAME = re.compile(r"(~?[\w:]+|operator\s*\S+?)\s*\(")


def head_of(text):
    """Returns the text before a brace without space at its ends, and the number of space characters before it."""
    stripped = text.lstrip()
    return stripped.rstrip(), len(text) - len(stripped)


def cpp_functions(text):
    """Yields (name, first line, number of lines) of every function that is not defined within another."""
    code = NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    # `inside` is 0 outside functions. In a function it is the number of open braces, from the outermost one that opens neither a namespace nor
    # a type.
    stack, since, inside, last = [], 0, 0, None
    for match in re.finditer(r"[{};]", code):
        at, char = match.start(), match[0]
        if char == "{":
            head, space = head_of(code[since:at])
            scope = bool(SCOPE.match(head))
            function = not inside and not scope and ")" in head and not STATEMENT.match(head) and not head.endswith("=")
            name = NAME.search(head)
            opened = (function and name and name[1], since + space)
            if last and (not head or head.startswith(",")):
                # The braces that were just closed initialised a member in a constructor's list of initialisers, so the constructor's definition
                # continues.
                opened = last
            stack.append(opened)
            inside += not scope or inside > 0
        elif char == "}" and stack:
            name, begin = stack.pop()
            inside -= inside > 0
            last = (name, begin) if name and not inside else None
            if last:
                yield name, code.count("\n", 0, begin) + 1, code.count("\n", begin, at) + 1
        else:
            last = None
        since = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def too_large(root):
    """Returns a dict: entry for the list of exceptions -> message about what is too large."""
    found = {}
    for file in tree.files(*SOURCES, root=root):
        text = (root / file).read_text(errors="replace")
        lines = len(text.splitlines())
        if lines > LINES:
            found[f"file {file}"] = f"{file}: {lines} lines, at most {LINES} are allowed"
        if file.startswith("tests/"):
            continue
        functions = {".h": cpp_functions, ".cpp": cpp_functions, ".py": python_functions}.get(pathlib.Path(file).suffix)
        for name, line, length in functions(text) if functions else ():
            if length > FUNCTION:
                found[f"function {file} {name}"] = f"{file}:{line}: {name} has {length} lines, at most {FUNCTION} are allowed"
    folders = collections.Counter(str(pathlib.PurePosixPath(file).parent) for file in tree.files("*", root=root))
    for folder, count in folders.items():
        if count > FILES:
            found[f"folder {folder}"] = f"{folder}: {count} files, at most {FILES} are allowed"
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=tree.ROOT)
    root = parser.parse_args().root
    found = too_large(root)
    listed = root / EXCEPTIONS
    lines = listed.read_text().splitlines() if listed.exists() else []
    allowed = {line.split("#")[0].strip() for line in lines} - {""}
    problems = [message for entry, message in sorted(found.items()) if entry not in allowed]
    problems += [f"{EXCEPTIONS}: '{entry}' is no longer needed: remove it" for entry in sorted(allowed - set(found))]
    return tree.report("sizes", problems, len(tree.files(*SOURCES, root=root)))


if __name__ == "__main__":
    sys.exit(main())
