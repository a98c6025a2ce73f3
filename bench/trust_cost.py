#!/usr/bin/env python3
"""The cost of the sandbox, TLS and checked signatures for a tuning job.

usage: trust_cost.py [--bin build/release/bin] [--model tests/data/layernorm_residual.onnx] [--trials 12] [--rounds 4]
                     [--devices cpu]

Each round tunes the model anew (--retune, the same seed) on two fleets of one coordinator and one worker, in turns: a bare
one (unix socket, --sandbox none, signatures not checked) and a guarded one (TLS with certificates, bubblewrap, --signers).
Prints the seconds of each job, and guarded over bare by medians and by least. Run it on an idle machine.

Proposals depend on measured times, so jobs have different candidates and their times differ by a tenth. With `--devices fake`
the time of a kernel is a hash of its source, after compiling and checking it, so that all jobs have the same candidates.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"


def certificates(folder):
    def openssl(command):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)

    openssl(f"req -x509 {NEW_KEY} -keyout ca.key -out ca.pem -days 2 -subj /CN=ca")
    for number, (name, alternative) in enumerate((("coordinator", "DNS:localhost"), ("worker", "URI:spiffe://lab/warploom/worker/w"), ("client", "URI:spiffe://lab/warploom/client/c"))):
        (folder / f"{name}.names").write_text(f"subjectAltName={alternative}\n")
        openssl(f"req {NEW_KEY} -keyout {name}.key -out {name}.csr -subj /CN={name}")
        openssl(f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -set_serial {number + 1} -days 2 -extfile {name}.names -out {name}.pem")


class Fleet:
    """A coordinator and a worker in a folder of their own. A context manager: leaving it ends both."""

    def __init__(self, programs, folder, guarded, devices):
        self.programs, self.folder, self.guarded, self.devices, self.children = programs, folder, guarded, devices, []

    def program(self, name, *arguments):
        return [str(self.programs / name), *map(str, arguments)]

    def start(self, name, *arguments):
        log = open(self.folder / f"{name}.log", "w")
        self.children.append(subprocess.Popen(self.program(name, *arguments), cwd=self.folder, stdout=log, stderr=subprocess.STDOUT))

    def shown(self, name):
        return ["--tls-ca", "ca.pem", "--tls-cert", f"{name}.pem", "--tls-key", f"{name}.key"] if self.guarded else []

    def said(self, name, what):
        while (found := re.search(what, (self.folder / f"{name}.log").read_text())) is None:
            if any(child.poll() is not None for child in self.children):
                raise SystemExit(f"{name} has ended:\n{(self.folder / f'{name}.log').read_text()}")
            time.sleep(0.05)
        return found.group(0).split()[-1]

    def __enter__(self):
        if self.guarded:
            certificates(self.folder)
        listen = "localhost:0" if self.guarded else f"unix:{self.folder}/s"
        self.start("warploomd", "--store", "a.db", "--listen", listen, *(["--trust-domain", "lab"] if self.guarded else []), *self.shown("coordinator"))
        self.server = ["--server", self.said("warploomd", r"listening on \S+")]
        sandbox = [] if self.guarded else ["--sandbox", "none"]
        self.start("warploom-worker", *self.server, *self.shown("worker"), "--devices", self.devices, *sandbox)
        self.said("warploom-worker", "registered")
        self.signers = []
        if self.guarded:
            printed = subprocess.run(self.program("warploom", "signer", *self.server, *self.shown("client")), cwd=self.folder, check=True, capture_output=True)
            (self.folder / "signers").write_bytes(printed.stdout)
            self.signers = ["--signers", "signers"]
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
            child.wait()

    def job(self, model, trials):
        """Returns the seconds from the start of `warploom tune` until its bundle is written."""
        options = ["--retune", "--seed", 0, "--trials", trials, "--out", "tuned", *self.server, *self.shown("client"), *self.signers]
        begun = time.monotonic()
        done = subprocess.run(self.program("warploom", "tune", model, *options), cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "tests/data/layernorm_residual.onnx")
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--devices", choices=("cpu", "fake"), default="cpu")
    args = parser.parse_args()
    seconds = {"bare": [], "guarded": []}
    with tempfile.TemporaryDirectory(prefix="wl-") as bare, tempfile.TemporaryDirectory(prefix="wl-") as guarded:
        with Fleet(args.bin.resolve(), pathlib.Path(bare), False, args.devices) as first, Fleet(args.bin.resolve(), pathlib.Path(guarded), True, args.devices) as second:
            for number in range(args.rounds + 1):  # round 0 fills the caches of the machine and does not count
                for name, fleet in (("bare", first), ("guarded", second))[:: 1 if number % 2 else -1]:
                    took = fleet.job(args.model.resolve(), args.trials)
                    if number > 0:
                        seconds[name].append(took)
                        print(f"round {number} {name:8} {took:7.2f} s", flush=True)
    for how, of in (("medians", statistics.median), ("least", min)):
        print(f"guarded over bare by {how}: {of(seconds['guarded']) / of(seconds['bare']):.3f}")


if __name__ == "__main__":
    main()
