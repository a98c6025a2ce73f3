#!/usr/bin/env python3
"""`warploom top` on a real terminal: it shows a job and a worker, even in few columns and rows; it continues while the coordinator does not
run, and restores the terminal when it ends. Without a terminal it prints its state once, or JSON for programs."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import graphs
from harness import BIN, PATIENCE, Scratch, expect, fail, until

SERVER = ["--server", "unix:s"]
EVIL = "evil\x1b[2J\x07.graph"


class Screen:
    """A program of this project on a terminal of its own. Each frame that the program prints begins with the sequence that moves the cursor
    home."""

    def __init__(self, scratch, *command, rows=24, columns=100):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=dict(scratch.environment, TERM="xterm"),
            cwd=scratch.root,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(timeout=30)
        os.close(self.master)
        os.close(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, key):
        os.write(self.master, key)

    def read(self):
        while select.select([self.master], [], [], 0.02)[0]:
            with contextlib.suppress(OSError):
                self.seen += os.read(self.master, 65536)

    def lines(self):
        """Returns the lines of the last frame that was printed completely."""
        self.read()
        frames = re.findall(rb"\x1b\[H(.*?)\x1b\[J", self.seen, re.S)
        if not frames:
            return []
        text = frames[-1].decode()
        return [re.sub(r"\x1b\[[0-9;]*[mK]", "", line) for line in re.split("\r+\n", text)]

    def shows(self, pattern, what):
        def matched():
            found = re.search(pattern, "\n".join(self.lines()), re.M)
            expect(self.process.poll() is None, f"it ended: {self.seen[-2000:]!r}")
            return found

        try:
            return until(matched, 60, what)
        except AssertionError as error:
            fail(f"{error}; the screen has\n" + "\n".join(self.lines()))

    def ended(self, code):
        expect(self.process.wait(timeout=30 * PATIENCE) == code, f"it ended with {self.process.returncode}")
        self.is_as_before()

    def is_as_before(self):
        self.read()
        expect(termios.tcgetattr(self.slave) == self.before, "the terminal has other settings than before")
        for on, off in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?7l", b"\x1b[?7h")):
            expect(self.seen.rfind(off) > self.seen.rfind(on) >= 0, f"{on!r} is not undone")


def without_a_terminal(scratch):
    """Reads the output without a terminal while a job waits for a worker."""
    said = until(lambda: (found := scratch.run("warploom", "top", *SERVER).out) and "1 queued" in found and found, 60, "a job waits")
    expect(re.search(r"^jobs: 0 running, 1 queued  workers: 0 busy, 0 idle, 0 lost", said, re.M), said)
    expect("\x1b" not in said and "\x07" not in said and "evil?[2J?.graph" in said, f"control characters: {said!r}")
    line = scratch.run("warploom", "top", *SERVER, "--json", "-", "--once").out
    expect(line.count("\n") == 1, line)
    job = json.loads(line)["jobs"][0]
    expect(job["state"] == "queued" and job["label"] == "evil?[2J?.graph" and job["trials_per_s"] == 0, job)
    done = scratch.run("warploom", "top", "--server", "unix:nobody", expect=4)
    expect("no coordinator answers at unix:nobody" in done.err, done.err)
    expect("--server is required" in scratch.run("warploom", "top", expect=1).err, "it needs a server")


def lines_for_programs(scratch):
    """With --json, `top` prints a line at each interval until the program is ended."""
    command = [str(BIN / "warploom"), "top", *SERVER, "--json", "-", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=scratch.environment, cwd=scratch.root, text=True) as process:
        times = [json.loads(process.stdout.readline())["unix_ms"] for _ in range(3)]
        process.kill()
    expect(times == sorted(times) and len(set(times)) == 3, times)


def on_a_terminal(scratch, first):
    top = ("warploom", "top", *SERVER, "--interval", "0.2")
    with Screen(scratch, *top) as screen:
        screen.shows(r"^jobs/1 .*evil\?\[2J\?\.graph$", "the job is there")
        worker = scratch.start("warploom-worker", *SERVER, "--devices", "fake", "--name", "somebody", name="worker")
        screen.shows(r"^\S*somebody +(begins|compile|check|measure), (search|promotion 1), \d+ candidates?", "the worker has a lease")
        screen.shows(r"^jobs/1 +search .*\[#*\.*\] +\d+% +[1-9]\d*/\d+", "trials are done")
        screen.shows(r"trials/s: [0-9.]+$", "there is a rate")
        screen.press(b"u")
        screen.shows("^no program has said in the last week what it runs", "the screen of usage")
        screen.shows(r"^tuning has saved -; searches took [0-9.]+ \S+ of workers for [1-9]\d* candidates$", "what searches took")
        screen.press(b"\t")
        screen.shows("^jobs/1 ", "the screen of jobs again")
        narrow(screen)
        away(scratch, screen, first)
        stopped_and_continued(screen)
        screen.press(b"q")
        screen.ended(0)
    for key in (b"\x03", b"\x04"):
        with Screen(scratch, *top) as screen:
            screen.shows("^jobs/1 ", "it draws")
            screen.press(key)
            screen.ended(0)
    with Screen(scratch, *top) as screen:
        screen.shows("^jobs/1 ", "it draws")
        screen.process.terminate()
        screen.ended(0)
    with Screen(scratch, *top, "--once") as screen:
        expect(screen.process.wait(timeout=30 * PATIENCE) == 0, "it looks once")
        screen.read()
        expect(b"jobs/1" in screen.seen and b"\x1b[?1049h" not in screen.seen, f"{screen.seen!r}")
    worker.kill()


def narrow(screen):
    for rows, columns in ((8, 30), (4, 12), (1, 1)):
        screen.resize(rows, columns)
        until(lambda: all(len(line) <= columns for line in screen.lines()), 30, f"lines of {columns} characters")
        expect(0 < len(screen.lines()) <= rows, screen.lines())
    screen.resize(8, 30)
    screen.shows(r"^jobs/1 ", "the name of the job stays")
    screen.shows(r"^uid:\d+/\w", "the name of the worker stays")
    screen.resize(24, 100)
    screen.shows(r"TRIALS/S", "what was left out comes back")


def away(scratch, screen, first):
    first.kill()
    screen.shows(r"^no answer for \d+ s, trying again: no coordinator answers at unix:s", "it says that nobody answers")
    screen.shows(r"^jobs/1 ", "what was known stays")
    scratch.serve("s", store="a.db")
    until(lambda: "no answer" not in "\n".join(screen.lines()), 60, "the coordinator is back")
    screen.shows(r"^jobs/1 ", "and shows the job")


def stopped_and_continued(screen):
    screen.press(b"\x1a")
    pid, status = until(
        lambda: (found := os.waitpid(screen.process.pid, os.WUNTRACED | os.WNOHANG))[0] and found, 30, "Ctrl-Z stops it"
    )
    expect(pid == screen.process.pid and os.WIFSTOPPED(status), f"Ctrl-Z: {status}")
    screen.is_as_before()
    drawn = len(screen.seen)
    os.kill(screen.process.pid, signal.SIGCONT)
    until(lambda: screen.lines() and b"jobs/1" in screen.seen[drawn:], 30, "it goes on")


def main():
    with Scratch() as scratch:
        first = scratch.serve("s", store="a.db")
        (scratch.root / EVIL).write_text(graphs.SOFTMAX)
        scratch.start("warploom", "tune", EVIL, *SERVER, "--trials", 400, name="tune")
        without_a_terminal(scratch)
        lines_for_programs(scratch)
        on_a_terminal(scratch, first)
        print("ok")


if __name__ == "__main__":
    main()
