#!/usr/bin/env python3
"""Makes a documentation site from the repository's pages: README, docs/, deploy/ and bench/, with the files that they refer to.

    build/venv-site/bin/python tools/site_pages.py [--out build/site/html]

`make site` installs MkDocs Material and calls this program. A link to a page or file that does not exist is an error. The site loads nothing
from other servers: it uses the browser's fonts.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build/site/source"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)]*)?(\))")


def pages():
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "deploy/README.md", "bench/README.md")]
    return found + sorted((ROOT / "docs").rglob("*.md"))


def target_of(page, link):
    """Returns the file that a link in a page leads to; for a link to a folder, its README if it has one, else the folder; None for
    addresses with a scheme."""
    if re.match(r"[a-z]+:", link):
        return None
    target = (page.parent / link).resolve()
    if target.is_dir():
        return target / "README.md" if (target / "README.md").exists() else target
    if not target.exists() or not target.is_relative_to(ROOT):
        sys.exit(f"{page.relative_to(ROOT)}: there is no {link}")
    return target


def place_of(file):
    return SOURCE / file.relative_to(ROOT)


def relative(target, page):
    return pathlib.Path(*[".."] * len(page.parent.relative_to(ROOT).parts), target.relative_to(ROOT)).as_posix()


def write(page):
    """Copies a page and the files that it refers to. Files that are no pages get the ending .txt, so that browsers show them."""

    def mended(match):
        opening, link, anchor, closing = match.groups()
        target = target_of(page, link)
        if target is None:
            return match.group(0)
        if target.is_dir():
            target = next((file for file in sorted(target.rglob("*")) if file.is_file()), page)
        if target.suffix != ".md":
            copy = place_of(target)
            text = copy if copy.suffix in (".json", ".md", ".svg", ".txt") else copy.with_name(copy.name + ".txt")
            text.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, text)
            target, anchor = ROOT / text.relative_to(SOURCE), None
        return f"{opening}{relative(target, page)}{anchor or ''}{closing}"

    place = place_of(page)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(LINK.sub(mended, page.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=ROOT / "build/site/html", help="the folder of the site")
    options = parser.parse_args()
    shutil.rmtree(SOURCE, ignore_errors=True)
    for page in pages():
        write(page)
    command = [pathlib.Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--quiet", "--clean"]
    command += ["--config-file", ROOT / "mkdocs.yml", "--site-dir", pathlib.Path(options.out).resolve()]
    return subprocess.run(command, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
