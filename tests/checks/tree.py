"""Functions that the checks of the source tree share."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(*patterns, root=ROOT):
    """Returns files of the project that match the git patterns: tracked files, and new ones that git does not
    ignore."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:  # an unpacked archive has no git: everything except the build
        names = [
            path.relative_to(root).as_posix()
            for pattern in patterns
            for path in root.rglob(pattern)
            if path.is_file() and path.relative_to(root).parts[0] not in ("build", ".git")
        ]
    # Files in tests/data are made by programs, so the checks do not apply to them.
    return sorted({name for name in names if (root / name).is_file() and not name.startswith("tests/data/")})


def report(name, problems, checked):
    """Prints the problems found and returns the exit code."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked} files, {len(problems)} problems")
    return 1 if problems else 0
