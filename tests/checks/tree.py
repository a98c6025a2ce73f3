"""Functions that the checks of the source tree share."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(*patterns, root=ROOT):
    """Returns files of the project that match the git patterns: tracked files, and new ones that git does not
    ignore."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:  # an unpacked archive has no git, so all files outside the build folder are listed
        names = [
            path.relative_to(root).as_posix()
            for pattern in patterns
            for path in root.rglob(pattern)
            if path.is_file() and path.relative_to(root).parts[0] not in ("build", ".git")
        ]
    # Programs write the files in tests/data, so the checks do not apply to these files.
    return sorted({name for name in names if (root / name).is_file() and not name.startswith("tests/data/")})


def run_on(check, sources, *options):
    """Runs a check on a temporary tree, for tests of the checks. `sources` are a dict: name -> text; "ROOT" in an option stands for the
    tree's folder. Returns the exit code and the output."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [sys.executable, ROOT / "tests/checks" / check, "--root", folder, *(option.replace("ROOT", folder) for option in options)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def report(name, problems, checked):
    """Prints the problems found and returns the exit code."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked} files, {len(problems)} problems")
    return 1 if problems else 0
