#!/usr/bin/env python3
"""Fails on every #include and word that tests/layers.txt forbids, with the file, the line and the edge; on folders and
headers that include each other in a circle, those of tests/ and bench/ too; on Python files that import each other in a circle;
and on types of the same name in two headers.

    layers.py [--root DIR] [--layers FILE]
"""

import argparse
import ast
import fnmatch
import pathlib
import re
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
# Matches everything that is not code: comments and literals. Newlines are kept so that line numbers stay right.
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
# Matches the definition of a type, other than a template, at the outermost level of a header.
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: :.*)? \{")
PRELUDE = "compiler/target/prelude/"
# Programs outside the layers, which may include whatever they test or measure.
OUTSIDE = ("tests", "bench")


class LayersError(Exception):
    """An error in tests/layers.txt itself."""


class Layers:
    """The parsed tests/layers.txt."""

    def __init__(self, text):
        self.edges = {}  # folder or file -> set of folders and headers that it may include
        self.only = []  # pairs of a pattern and a list of the folders and files that may include headers that match it
        self.never_include = []  # pairs of a folder and a pattern that it may not include
        self.never_use = []  # pairs of a folder and a word that its code may not use
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if line:
                self._read(number, line)
        self._require_no_cycle()

    def _read(self, number, line):
        words = line.split()
        if words[0] == "never" and len(words) > 3 and words[2] in ("include", "use"):
            table = self.never_include if words[2] == "include" else self.never_use
            table.extend((words[1], word) for word in words[3:])
            return
        left, colon, right = line.partition(":")
        if not colon:
            raise LayersError(f"layers.txt:{number}: expected 'FOLDER: ENTRIES', 'only' or 'never', found '{line}'")
        if words[0] == "only":
            self.only.extend((pattern, right.split()) for pattern in left.split()[1:])
        elif left in self.edges:
            raise LayersError(f"layers.txt:{number}: '{left}' is there twice")
        else:
            self.edges[left] = set(right.split())

    def _require_no_cycle(self):
        done, path = set(), []

        def visit(folder):
            if folder in path:
                raise LayersError("layers.txt: cycle " + " -> ".join(path[path.index(folder) :] + [folder]))
            if folder in done or folder not in self.edges:
                return
            path.append(folder)
            for entry in sorted(self.edges[folder]):
                visit(entry)
            done.add(path.pop())

        for folder in self.edges:
            visit(folder)

    def folder_of(self, path):
        """The longest folder of the table that holds the path, or None."""
        parts = path.split("/")[:-1]
        for length in range(len(parts), 0, -1):
            if "/".join(parts[:length]) in self.edges:
                return "/".join(parts[:length])
        return None

    def allows(self, file, header):
        """Returns whether a file of the tree may include a header of the tree."""
        source, target = self.folder_of(file), self.folder_of(header)
        if source == target and source is not None:
            return True
        allowed = self.edges.get(source, set()) | self.edges.get(file, set())
        return header in allowed or target in allowed


def matches(header, pattern):
    return header.startswith(pattern) if pattern.endswith("/") else header == pattern


def within(file, place):
    return fnmatch.fnmatch(file, place + "/*") or fnmatch.fnmatch(file, place)


def check_include(layers, file, header, quoted, root):
    """Yields the messages about one #include in one file."""
    top = header.split("/")[0]
    ours = quoted and (root / top).is_dir() and any(folder.split("/")[0] == top for folder in layers.edges)
    if quoted and ("/" not in header or header.startswith(".")) and not header.endswith(".inc"):
        yield f'"{header}" is not written from the root of the tree'
    if ours and not layers.allows(file, header):
        yield f"{layers.folder_of(file) or file} -> {layers.folder_of(header) or header} is not an edge of tests/layers.txt"
    for pattern, places in layers.only:
        if matches(header, pattern) and not any(within(file, place) for place in places):
            yield f"only {' '.join(places)} may include {pattern}"
    for folder, pattern in layers.never_include:
        if matches(header, pattern) and within(file, folder):
            yield f"nothing under {folder} may include {pattern}"


def check_file(layers, file, root):
    text = (root / file).read_text(errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            for message in check_include(layers, file, found[2], found[1] == '"', root):
                yield f"{file}:{number}: #include {found[2]}: {message}"
    words = [word for folder, word in layers.never_use if within(file, folder)]
    if words:
        code = NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
        pattern = re.compile(r"(?<![\w.>])(" + "|".join(words) + r")\b")
        for number, line in enumerate(code.splitlines(), 1):
            for found in pattern.finditer(line):
                yield f"{file}:{number}: {found[1]}: nothing under the compiler may use it: compilation is a pure function"


def check_names(files, root):
    """Yields a message for each two headers that have a type of the same name. A program links several layers, and if two of them had types
    of the same name, either type's destructor could run for both."""
    known = {}
    for file in files:
        if not file.endswith(".h") or file.startswith(PRELUDE):
            continue
        for number, line in enumerate((root / file).read_text(errors="replace").splitlines(), 1):
            found = TYPE.match(line)
            if found and known.setdefault(found[1], file) != file:
                yield f"{file}:{number}: {found[1]}: {known[found[1]]} has a type of that name; rename one"


def includes_of(file, root):
    """Yields (header, line) of the headers of the tree that a file includes, written from the root of the tree or from the file's own
    folder."""
    beside = pathlib.PurePosixPath(file).parent
    for number, line in enumerate((root / file).read_text(errors="replace").splitlines(), 1):
        found = INCLUDE.match(line)
        for header in (found[2], str(beside / found[2])) if found and found[1] == '"' else ():
            if (root / header).is_file():
                yield header, number
                break


def circle(edges):
    """Returns the first circle found among the edges, as a path that ends where it began, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node) :] + [node]
        if node in done:
            return None
        path.append(node)
        for to in sorted(edges.get(node, ())):
            found = visit(to)
            if found:
                return found
        done.add(path.pop())
        return None

    for node in sorted(edges):
        found = visit(node)
        if found:
            return found
    return None


def check_circles(files, root):
    headers, folders = {}, {}
    for file in files:
        folder = str(pathlib.PurePosixPath(file).parent)
        for header, number in includes_of(file, root):
            headers.setdefault(file, {})[header] = f"{file}:{number}"
            to = str(pathlib.PurePosixPath(header).parent)
            if to != folder:
                folders.setdefault(folder, {}).setdefault(to, f"{file}:{number}")
    for edges in (headers, folders):
        path = circle(edges)
        if path:
            steps = ", ".join(f"{at} includes {to}" for at, to in ((edges[a][b], b) for a, b in zip(path, path[1:])))
            yield f"{path[0]} includes itself in a circle: {steps}"


def imports_of(file, root):
    """Yields (file, line) of the Python files of the tree that a file imports: modules in its folder, and relative imports."""
    for node in ast.walk(ast.parse((root / file).read_text())):
        if isinstance(node, ast.Import):
            names, level = [alias.name for alias in node.names], 0
        elif isinstance(node, ast.ImportFrom):
            names, level = ([node.module] if node.module else [alias.name for alias in node.names]), node.level
        else:
            continue
        folder = pathlib.PurePosixPath(file).parents[max(level, 1) - 1]
        if level == 0 and (root / folder / "__init__.py").is_file():
            continue  # a package imports its own modules by relative names
        for name in names:
            module = folder / (name.replace(".", "/") + ".py")
            if (root / module).is_file():
                yield str(module), node.lineno


def check_imports(files, root):
    edges = {file: {to: f"{file}:{line}" for to, line in imports_of(file, root)} for file in files}
    path = circle(edges)
    if path:
        steps = ", ".join(f"{edges[a][b]} imports {b}" for a, b in zip(path, path[1:]))
        yield f"{path[0]} imports itself in a circle: {steps}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=tree.ROOT)
    parser.add_argument("--layers", type=pathlib.Path)
    options = parser.parse_args()
    try:
        layers = Layers((options.layers or options.root / "tests/layers.txt").read_text())
    except LayersError as error:
        return tree.report("layers", [str(error)], 0)
    every = tree.files("*.h", "*.cpp", "*.inc", "*.def", root=options.root)
    files = [f for f in every if f.split("/")[0] not in OUTSIDE]
    problems = [problem for file in files for problem in check_file(layers, file, options.root)]
    problems += check_names(files, options.root)
    problems += check_circles(every, options.root)
    problems += check_imports(tree.files("*.py", root=options.root), options.root)
    return tree.report("layers", problems, len(files))


if __name__ == "__main__":
    sys.exit(main())
