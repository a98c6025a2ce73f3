"""Runs the program `warploom` as a child process, and reads its progress and its report."""

import contextlib
import json
import logging
import os
import pathlib
import shutil
import signal
import subprocess
import sys

log = logging.getLogger("warploom")


class ProgramError(RuntimeError):
    """An error of the program, with its message. `code`: its exit code, as docs/report.md lists them."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def program():
    """Returns the path of the program `warploom`: in WARPLOOM_BIN_DIR, in this package, in the build tree, or on PATH, in this order."""
    package = pathlib.Path(__file__).parent
    for folder in filter(None, [os.environ.get("WARPLOOM_BIN_DIR"), package / "bin", package.parent.parent / "bin"]):
        found = shutil.which("warploom", path=str(folder))
        if found:
            return found
    # Scripts on the PATH are skipped: the script `warploom` that pip installs calls this function, and would be found instead of the
    # program.
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("warploom", path=folder)
        if found and pathlib.Path(found).read_bytes()[:2] != b"#!":
            return found
    raise ProgramError("the program warploom was not found: set WARPLOOM_BIN_DIR to its folder", 7)


def _words(options):
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            yield flag
        else:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                yield from (flag, str(one))


_ERROR = "warploom: error: "
_LONGEST_END = 0.8  # seconds from SIGTERM to SIGKILL; the program itself allows 0.7 s for its end (kGrace in client/cli/line/run_cli.cpp)


class Call:
    """A run of the program with `--json`, whose progress can be followed. The program ends when this process ends."""

    def __init__(self, *words, token=None, progress=False, **options):
        # The report is written to a file in memory (memfd), so that nothing is left if this process is killed.
        self._report = os.fdopen(os.memfd_create("report", os.MFD_CLOEXEC), "r+b")
        command = [program(), "--end-with", str(os.getpid()), *map(str, words), "--json", "-", *_words(options)]
        if progress:
            command += ["--progress", "json"]
        environment = os.environ | {"WARPLOOM_TOKEN": token} if token else None
        # The child has a session of its own, so that Ctrl-C on the terminal does not reach it; interrupt() sends it the signal.
        self._child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._report, stderr=subprocess.PIPE,
            text=True, errors="replace", env=environment, start_new_session=True,
        )  # fmt: skip
        self._said = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self._child.stderr.close()
        self._child.wait()
        self._report.close()

    def progress(self):
        """Yields a dict, as `--progress json` prints it, for every change, until the program ends. Logs and keeps all other lines."""
        for line in self._child.stderr:
            if line.startswith("{"):
                change = json.loads(line)
                if "says" not in change:
                    yield change
                    continue
                line = change["says"]
            self._said.append(line.rstrip())
            log.info("%s", self._said[-1])

    def interrupt(self):
        """Sends SIGINT: the first ends a search early and keeps its best kernels so far, the second ends the program at once."""
        self._child.send_signal(signal.SIGINT)

    def stop(self):
        """Ends the program; what it has measured is kept."""
        if self._child.poll() is None:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_LONGEST_END)
            self._child.kill()

    def wait(self):
        """Waits until the program has ended, and returns its exit code."""
        for _ in self.progress():
            pass
        return self._child.wait()

    def result(self):
        """Waits until the program has ended, and returns its report. Raises ProgramError if the exit code is not 0."""
        code = self.wait()
        if code != 0:
            said = [line for line in self._said if line]
            errors = [line.removeprefix(_ERROR) for line in said if line.startswith(_ERROR)]
            raise ProgramError((errors or said[-1:] or [f"{self._child.args[0]} ended with {code}"])[0], code)
        self._report.seek(0)
        return json.loads(self._report.read())


def call(*words, token=None, **options):
    """Runs `warploom WORDS` with further options, such as trials=8, and returns its report."""
    with Call(*words, token=token, **options) as running:
        return running.result()


def main():
    """The command `warploom` that pip installs."""
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
