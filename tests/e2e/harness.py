"""Helpers of the end-to-end tests. They run the real programs, each test in a folder of its own, wait for every child process to end, and
limit the time of every wait."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("WARPLOOM_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BIN = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", SOURCE / "build/release/bin"))
MODELS = SOURCE / "tests/data"
SKIPPED = 77
SCALE = float(os.environ.get("WARPLOOM_TEST_SCALE", "1"))
WHOLE = SCALE >= 1  # whether tests do everything; if not, they leave out repetitions that add little (tests/unit/fuzz.h)
# A test that a shell started in the background ignores SIGINT, and its children would too. Setting a handler undoes that.
signal.signal(signal.SIGINT, signal.default_int_handler)
PATIENCE = float(os.environ.get("WARPLOOM_PATIENCE", "1"))  # factor on every deadline, for slow builds with sanitizers


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


class Scratch:
    """A private folder and the processes that run in it, as a context manager: leaving it kills the processes and waits until they have
    ended."""

    def __init__(self):
        # The folder's path is short, since the path of a Unix socket may have at most 107 characters.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="wl-"))
        self.children = []
        self.at_end = []  # functions to call when all processes of the test have ended
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.root / "cache"), HOME=str(self.root), NO_COLOR="1")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for child in self.children:
            child.kill()
        for undo in self.at_end:
            undo()
        if kind is not None:
            for log in sorted(self.root.glob("*.log")):
                print(f"---- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
        shutil.rmtree(self.root, ignore_errors=True)

    def path(self, name):
        return str(self.root / name)

    def run(self, *command, deadline=300, expect=0, **options):
        """Runs a program of this project to its end. Fails unless its exit code is `expect` (None: any code)."""
        command = [str(BIN / command[0]), *map(str, command[1:])]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.root,
            start_new_session=True,
            **options,
        )
        try:
            out, err = process.communicate(timeout=deadline * PATIENCE)
        except subprocess.TimeoutExpired:
            kill_group(process)
            out, err = process.communicate()
            fail(f"{show(command)}: not done after {deadline * PATIENCE} s\n{out}\n{err}")
        finally:
            kill_group(process)
        if expect is not None and process.returncode != expect:
            fail(f"{show(command)}: exit code {process.returncode}, expected {expect}\n{out}\n{err}")
        return Done(process.returncode, out, err)

    def start(self, *command, name=None, **options):
        """Starts a program of this project; its output goes to NAME.log."""
        child = Child(self, [str(BIN / command[0]), *map(str, command[1:])], name or command[0], options)
        self.children.append(child)
        return child

    def serve(self, socket, *options, store, name="coordinator", **more):
        """Starts a coordinator on a Unix socket, and returns its process once it listens."""
        child = self.start("warploomd", "--store", store, "--listen", f"unix:{socket}", *options, name=name, **more)
        until(lambda: listening(self.path(socket)), 60, f"{name} listens")
        return child

    def callers(self, rows, name="callers"):
        """Writes a file of callers, which only its owner may read."""
        (self.root / name).write_text(rows)
        (self.root / name).chmod(0o600)

    def token(self, caller, role, *options, callers="callers", file=None):
        """Makes a token of a caller, writes it to a file (CALLER.token unless another name is given) and returns it."""
        made = self.run("warploomd", "token", caller, "--callers", callers, "--role", role, *options).out
        (self.root / (file or f"{caller}.token")).write_text(made)
        return made.strip()

    def mounted(self, name, options):
        """Mounts a tmpfs with these options until the end of the test, and returns its folder; None if this process may not mount one."""
        folder = self.root / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
            return None
        self.at_end.append(lambda: subprocess.run(["umount", "-l", folder], check=True))
        return folder

    def certificates(self, *roles):
        """Makes certificates in tls/ by deploy/certificates.sh. Each role is a list of its name and the names of its callers or hosts."""
        for role in roles:
            tool(SOURCE / "deploy/certificates.sh", self.path("tls"), *role)

    def logged(self, name, pattern, what):
        """Waits until NAME.log matches the pattern, and returns the first group of the match."""
        log = self.root / f"{name}.log"
        return until(lambda: re.search(pattern, log.read_text()), 60, what).group(1)


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)


class Child:
    def __init__(self, scratch, command, name, options):
        self.log = open(scratch.root / f"{name}.log", "ab")
        self.process = subprocess.Popen(
            command,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env=scratch.environment,
            cwd=scratch.root,
            start_new_session=True,
            **options,
        )

    def kill(self):
        """Kills the process with SIGKILL, then the rest of its group; waits until the process has ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)
        kill_group(self.process)
        self.log.close()

    def wait(self, deadline):
        return self.process.wait(timeout=deadline * PATIENCE)


def shown(who, folder="tls/"):
    """Returns the options by which a program authenticates with the certificate of a caller or host."""
    return ["--tls-ca", f"{folder}ca.pem", "--tls-cert", f"{folder}{who}.pem", "--tls-key", f"{folder}{who}.key"]


def kill_group(process):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def tool(*command, code=0, cwd=None):
    """Runs a program of another project to its end, and returns its stdout. Fails unless its exit code is `code`."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600 * PATIENCE, cwd=cwd, check=False)
    expect(done.returncode == code, f"{show(command)}: exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def has_sanitizer(program):
    """Returns whether a program or library was built with a sanitizer; a program without a sanitizer cannot load such a library."""
    return "san.so" in tool("ldd", program)


def python_package():
    """Returns the folder of this build's Python package; skips the test if Python can load no such package."""
    package = BIN.parent / "python"
    core = list(package.glob("warploom/_core*.so"))
    if not core:
        skip("there is no Python package in this build")
    if has_sanitizer(core[0]):
        skip("Python has no sanitizer")
    return package


def torch_python():
    """Returns the Python that has PyTorch (`tools/setup.sh peers`). Skips the test without such a Python, or if this build has no Python
    package."""
    python = SOURCE / "build/venv-peers/bin/python"
    if not python.exists():
        skip("there is no PyTorch")
    python_package()
    return python


def torch_child(scratch, file, *words, timeout):
    """Runs a test's own file with --child to its end, by the Python that has PyTorch."""
    environment = scratch.environment | {"WARPLOOM_BIN_DIR": str(BIN)}
    return subprocess.run([torch_python(), file, "--child", *words], env=environment, capture_output=True, text=True, timeout=timeout)


def torch_test(file, child, timeout):
    """The main() of a test that needs PyTorch: runs `child` with the words of the command line, in a process whose Python has PyTorch."""
    if "--child" in sys.argv:
        return child(*sys.argv[2:])
    with Scratch() as scratch:
        done = torch_child(scratch, file, *sys.argv[1:], timeout=timeout)
        expect(done.returncode == 0, f"{done.stdout}{done.stderr[-6000:]}")


def torch_tool(file, *words, timeout):
    """Runs a program that needs PyTorch and the package expecttest. Skips the test if one of them is missing."""
    python = torch_python()
    if subprocess.run([python, "-c", "import expecttest"], capture_output=True).returncode != 0:
        skip("there is no expecttest")
    with Scratch() as scratch:
        done = subprocess.run([python, SOURCE / file, *words], env=scratch.environment, capture_output=True, text=True, timeout=timeout)
        expect(done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}")


def until(condition, deadline, what):
    """Polls until condition() is true, and returns its value. Fails after `deadline` seconds, times PATIENCE."""
    end = time.monotonic() + deadline * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            fail(f"waited {deadline * PATIENCE} s for {what}")
        time.sleep(0.02)


def listening(path):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
            return True
        except OSError:
            return False


def digest_of(folder):
    """Returns name -> SHA-256 of every file under the folder."""
    folder = pathlib.Path(folder)
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def bundles_of(folder):
    """Returns the contents of all bundles under a folder: name -> text or digest. Left out are the names of workers, the errors that checks
    found, and plans, since either of two plans with the same source may be proposed first."""
    folder = pathlib.Path(folder)
    said = {name: digest for name, digest in digest_of(folder).items() if not name.endswith(("manifest.json", "report.json"))}
    for path in folder.rglob("report.json"):
        report = json.loads(path.read_text())
        for group in report["groups"]:
            for key in ("record", "measured_by", "confirmed_by", "max_error", "bound", "plan"):
                del group[key]
        said[str(path.relative_to(folder))] = json.dumps(report)
    return said


def expect_same(made, wanted):
    """Compares two dictionaries and shows what differs."""
    names = sorted(name for name in made.keys() | wanted.keys() if made.get(name) != wanted.get(name))
    expect(not names, "\n".join(f"{name}: {made.get(name)}\n  expected {wanted.get(name)}" for name in names))


def rows_in(store, query):
    """Returns the rows of a query on a store, which a coordinator may have open; no rows while the file or its tables do not exist yet."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=5)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def trials_in(store):
    """Returns the number of trials of a store, without confirmations, whose number depends on when a second worker started."""
    return sum(count for (count,) in rows_in(store, "SELECT count(*) FROM trials WHERE phase < 1000000"))


def library_trials(store, library):
    """Returns the plan, outcome and message of each trial of a library's kernels."""
    return [row for row in rows_in(store, "SELECT plan, outcome, message FROM trials") if f" class={library} " in row[0]]


def leased_in(store, where="TRUE"):
    """Returns the names of the workers that lease a batch for which the condition holds."""
    leased = rows_in(store, f"SELECT worker FROM batches WHERE state = 'leased' AND ({where})")
    return {worker.rsplit("#", 1)[0] for (worker,) in leased}


def show(command):
    return " ".join(map(str, command))


def fail(why):
    raise AssertionError(why)


def expect(condition, why):
    if not condition:
        fail(why)
