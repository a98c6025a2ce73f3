#!/usr/bin/env python3
"""Authentication and authorisation with the real programs and certificates made by openssl: a fleet over TLS, tokens, the operator's
socket, the messages for every mistake, certificates that are replaced without a restart, and the audit lines in the log."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import graphs
from harness import Scratch, expect, skip, until

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Authority:
    """A certificate authority, and the certificates that it signs."""

    def __init__(self, folder, name):
        self.folder, self.name, self.made = pathlib.Path(folder), name, 0
        self.openssl("req", "-x509", *NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], cwd=self.folder, capture_output=True, text=True)
        expect(done.returncode == 0, done.stderr)

    def make(self, name, names, days=2):
        """Writes NAME.pem and NAME.key. With a negative number of days, the certificate has expired already."""
        self.made += 1
        (self.folder / f"{name}.names").write_text(f"subjectAltName={names}\n")
        self.openssl("req", *NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        authority = ["-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key", "-set_serial", str(self.made)]
        self.openssl("x509", "-req", "-in", f"{name}.csr", *authority, "-days", str(days), "-extfile", f"{name}.names", "-out", f"{name}.pem")


def certificates(scratch):
    lab, other = Authority(scratch.root, "lab"), Authority(scratch.root, "other")
    lab.make("coordinator", "DNS:localhost,IP:127.0.0.1")
    lab.make("elsewhere", "DNS:coordinator.lab")
    lab.make("gpu7", "URI:spiffe://lab/warploom/worker/gpu7")
    lab.make("alice", "URI:spiffe://lab/warploom/client/alice")
    lab.make("desk", "URI:spiffe://lab/desk,DNS:desk.lab")
    lab.make("old", "URI:spiffe://lab/warploom/client", days=-1)
    lab.make("stale", "DNS:localhost", days=-1)
    other.make("mallory", "URI:spiffe://lab/warploom/operator")
    return lab, other


def shown(name, ca="lab"):
    return ["--tls-ca", f"{ca}.pem", "--tls-cert", f"{name}.pem", "--tls-key", f"{name}.key"]


def serve(scratch, name, *options):
    """Starts a coordinator; returns its process and its addresses."""
    child = scratch.start("warploomd", "--store", f"{name}.db", *options, name=name)
    log = scratch.root / f"{name}.log"
    line = until(lambda: re.search(r"listening on (\S+)", log.read_text()), 60, f"{name} listens")
    return child, line.group(1).split(",")


def replaced(scratch, source, target):
    for kind in ("pem", "key"):
        shutil.copy(scratch.path(f"{source}.{kind}"), scratch.path("new"))
        os.replace(scratch.path("new"), scratch.path(f"{target}.{kind}"))


def a_fleet_over_tls(scratch, address, socket):
    scratch.start("warploom-worker", "--server", address, *shown("gpu7"), "--devices", "fake", name="worker")
    (scratch.root / "g.graph").write_text(graphs.EXP)
    scratch.run("warploom", "tune", "g.graph", "--server", address, *shown("alice"), "--trials", 2, "--out", "tuned")
    scratch.run("warploom", "get", "g.graph", "--server", address, *shown("alice"))
    scratch.run("warploom", "drain", "--server", address, *shown("desk"))
    scratch.run("warploom", "undrain", "--server", socket)


def tokens(scratch, address, socket, loopback):
    made = {}
    for role, life in (("client", "1d"), ("worker", "never"), ("operator", "1h")):
        made[role] = scratch.token(f"a-{role}", role, "--expires", life, file=f"{role}.token")
    expect(not any(token in (scratch.root / "callers").read_text() for token in made.values()), "a token is in the file")
    by_file = ["--token-file", "client.token"]
    until(lambda: scratch.run("warploom", "jobs", "--server", address, "--tls-ca", "lab.pem", *by_file, expect=None).code == 0, 20, "the token is known")
    scratch.run("warploom", "jobs", "--server", socket, *by_file)
    for where in (["--server", address, "--tls-ca", "lab.pem"], ["--server", loopback], ["--server", socket]):
        done = scratch.run("warploom", "drain", *where, *by_file, expect=2)
        expect("Drain needs the role operator; the token a-client has client" in done.err, done.err)
        scratch.run("warploom", "undrain", *where, "--token-file", "operator.token")
    scratch.environment["WARPLOOM_TOKEN"] = made["operator"]
    scratch.run("warploom", "undrain", "--server", loopback)
    del scratch.environment["WARPLOOM_TOKEN"]
    # A token is refused once its row is removed from the file of --callers.
    rows = (scratch.root / "callers").read_text()
    (scratch.root / "callers").write_text("".join(line + "\n" for line in rows.splitlines() if "a-client" not in line))
    until(lambda: scratch.run("warploom", "jobs", "--server", socket, *by_file, expect=None).code == 2, 20, "the token is revoked")
    done = scratch.run("warploom", "jobs", "--server", socket, *by_file, expect=2)
    expect("this token is not, or no longer, known here" in done.err and "warploomd token" in done.err, done.err)
    return made


def wrong_steps(scratch, address, loopback, stale, elsewhere):
    ca = ["--tls-ca", "lab.pem"]
    jobs = ["warploom", "jobs", "--server"]
    port = address.rsplit(":", 1)[1]
    steps = [
        ([*jobs, address, *shown("old")], 2, "--tls-cert old.pem: the certificate has expired on", "have its CA make a new one"),
        ([*jobs, address, *shown("mallory")], 2, "does not accept the certificate of --tls-cert mallory.pem, which is by CN = other", "use one by a CA"),
        ([*jobs, address, *shown("alice", ca="other")], 2, "is not by a CA of --tls-ca other.pem but by CN = lab", "ask whoever runs it"),
        ([*jobs, address, *ca], 2, "shows neither a certificate nor a token", "say --tls-cert and --tls-key, or --token-file"),
        ([*jobs, address], 2, "speaks TLS", "say --tls-ca"),
        ([*jobs, loopback, *shown("alice")], 2, "does not speak TLS", "leave out --tls-ca"),
        ([*jobs, f"192.0.2.1:{port}"], 2, "is on another machine, where nothing goes in plain text", "say --tls-ca"),
        ([*jobs, stale, *shown("alice")], 2, "has expired on", "must renew it"),
        ([*jobs, elsewhere, *shown("alice")], 2, "is for other names: DNS:coordinator.lab", "call it by one of them"),
        ([*jobs, address, *ca, "--tls-cert", "alice.pem"], 2, "expected --tls-cert and --tls-key together", ""),
        ([*jobs, address, *ca, "--tls-cert", "alice.pem", "--tls-key", "gpu7.key"], 2, "is not the key of the certificate alice.pem", ""),
        ([*jobs, address, "--tls-ca", "nothing.pem"], 2, "--tls-ca: cannot read nothing.pem: No such file", ""),
        ([*jobs, address, *ca, "--token-file", "g.graph"], 2, "expected a token, as `warploomd token` prints it", ""),
        (["warploom", "drain", "--server", address, *shown("alice")], 2, "Drain needs the role operator; the certificate of spiffe://lab/warploom/client/alice has client", "call with a certificate of"),
        (["warploom", "drain", "--server", loopback], 2, "Drain needs the role operator; a caller over TCP from this machine", "unix socket"),
        (["warploom-worker", "--server", address, *shown("alice"), "--exit-when-idle", "20"], 4, "RegisterWorker needs the role worker; the certificate of", "call with a certificate of"),
        (["warploom-worker", "--server", address, *shown("mallory"), "--exit-when-idle", "20"], 4, "does not accept the certificate of --tls-cert mallory.pem", ""),
        (["warploom-worker", "--server", address, *shown("old")], 1, "--tls-cert old.pem: the certificate has expired on", ""),
        (["warploomd", "--store", "x.db", "--listen", "0.0.0.0:0"], 1, "nothing goes to them in plain text", "say --tls-cert, --tls-key and --tls-ca"),
        (["warploomd", "--store", "x.db", "--listen", "localhost:0", "--callers", "g.graph"], 1, "callers g.graph, line 1: expected user, loopback, cert, token, team or machine", ""),
        (["warploomd", "--store", "x.db", "--listen", "localhost:0", *shown("old")], 1, "--tls-cert old.pem: the certificate has expired on", ""),
        (["warploomd", "--store", "x.db", "--listen", "localhost:0", *ca], 1, "expected --tls-cert and --tls-key with it", ""),
        (["warploomd", "token", "x", "--callers", "callers", "--role", "king"], 1, "--role: expected client, worker, operator", ""),
        (["warploomd", "token", "x", "--callers", "callers", "--role", "client", "--expires", "soon"], 1, "--expires: expected a time such as 30d or 12h", ""),
        (["warploomd", "token", "a-worker", "--callers", "callers", "--role", "client"], 2, "has a token of the name a-worker; remove its line", ""),
    ]
    for command, code, what, remedy in steps:
        done = scratch.run(*command, expect=code)
        expect(what in done.err and remedy in done.err, f"{command}: {what!r} and {remedy!r} are not in\n{done.err}")


def signatures_and_revocation(scratch, address, socket):
    """A client accepts only records that a coordinator in its --signers has signed; records of a revoked worker are no longer served."""
    get = ["warploom", "get", "g.graph", "--server", address, *shown("alice"), "--signers", "signers", "--out", "got"]
    line = scratch.run("warploom", "signer", "--server", address, *shown("alice")).out
    expect(re.fullmatch(r"[0-9a-f]{64} \S+\n", line), line)
    signers = scratch.root / "signers"
    for text, code, what in (
        (line, 0, ""),
        (f"# ours\n{'ab' * 32} other\n{line}", 0, ""),
        (f"{'ab' * 32} other\n", 2, "which is none of --signers"),
        ("", 2, "has no key; `warploom signer` prints"),
        ("lab\n", 2, "line 1: expected a key of 64 hexadecimal digits"),
    ):
        signers.write_text(text)
        done = scratch.run(*get, expect=code)
        expect(what in done.err, done.err)
    signers.write_text(line)
    gpu7 = "spiffe://lab/warploom/worker/gpu7"
    revoke = ["warploom", "revoke", gpu7, "--server", socket]
    done = scratch.run(*revoke, expect=2)
    expect(f"have the line `cert {gpu7} none` in the file of --callers" in done.err, done.err)
    done = scratch.run(*revoke[:2], "a/b", *revoke[3:], expect=2)
    expect("producer: expected what the names of its workers begin with" in done.err, done.err)
    with (scratch.root / "callers").open("a") as callers:
        callers.write(f"cert {gpu7} none\n")
    until(lambda: scratch.run(*revoke, expect=None).code == 0, 20, "the certificate is revoked")
    done = scratch.run(*get, expect=3)
    scratch.run("warploom", "revoke", "nobody", "--server", address, *shown("alice"), expect=2)


def certificates_are_replaced(scratch, other, address):
    """The coordinator's certificate is replaced without a restart, and then the certificate authority (CA) of its clients."""
    other.make("fresh", "DNS:localhost,IP:127.0.0.1")
    old, new = [["warploom", "jobs", "--server", address, *shown("alice", ca=ca)] for ca in ("lab", "other")]
    scratch.run(*old)
    scratch.run(*new, expect=2)
    replaced(scratch, "fresh", "coordinator")
    until(lambda: scratch.run(*new, expect=None).code == 0, 30, "the new certificate is shown")
    scratch.run(*old, expect=2)
    # The file with the certificate authority of the clients (--tls-ca of the coordinator) is replaced by that of another authority.
    lab = (scratch.root / "lab.pem").read_text()
    shutil.copy(scratch.path("other.pem"), scratch.path("new"))
    os.replace(scratch.path("new"), scratch.path("lab.pem"))
    mallory = ["warploom", "undrain", "--server", address, *shown("mallory", ca="other")]
    until(lambda: scratch.run(*mallory, expect=None).code == 0, 30, "the new CA is trusted")
    scratch.run(*new, expect=2)
    (scratch.root / "new").write_text(lab)
    os.replace(scratch.path("new"), scratch.path("lab.pem"))


def audit(scratch, name):
    lines = re.findall(r" audit (\{.*\})$", (scratch.root / f"{name}.log").read_text(), re.MULTILINE)
    return [json.loads(line) for line in lines]


def what_was_written_down(scratch, made):
    lines = audit(scratch, "coordinator")
    allowed = [(line["call"], line["who"]) for line in lines if line["outcome"] == "allowed"]
    expect(("Drain", "the certificate of spiffe://lab/desk") in allowed, allowed)
    expect(("Undrain", "the token a-operator") in allowed, allowed)
    expect(("Undrain", f"user {os.geteuid()}") in allowed, allowed)
    expect({call for call, _ in allowed} <= {"Drain", "Undrain", "RevokeProducer"}, allowed)
    refused = [line for line in lines if line["outcome"] == "refused"]
    expect(any(line["call"] == "Drain" and line["who"] == "the token a-client" and line["by"] == "tls" and "why" in line for line in refused), refused)
    for log in scratch.root.glob("*.log"):
        text = log.read_text(errors="replace")
        expect(not any(token in text for token in made.values()), f"a token is in {log.name}")


def main():
    if shutil.which("openssl") is None:
        skip("no openssl command")
    with Scratch() as scratch:
        _, other = certificates(scratch)
        scratch.callers("cert spiffe://lab/desk operator\n")
        _, (address, socket) = serve(scratch, "coordinator", "--listen", "localhost:0,unix:socket", "--callers", "callers", "--trust-domain", "lab", *shown("coordinator"))
        _, (loopback,) = serve(scratch, "plain", "--listen", "127.0.0.1:0", "--callers", "callers")
        _, (elsewhere,) = serve(scratch, "other-name", "--listen", "localhost:0", "--trust-domain", "lab", *shown("elsewhere"))
        a_fleet_over_tls(scratch, address, socket)
        made = tokens(scratch, address, socket, loopback)
        # A coordinator's certificate expires while it runs: it starts with a valid certificate, which is then replaced by an expired one.
        replaced(scratch, "elsewhere", "soon")
        _, (stale,) = serve(scratch, "stale", "--listen", "localhost:0", "--trust-domain", "lab", *shown("soon"))
        replaced(scratch, "stale", "soon")
        time_out = time.monotonic() + 30
        jobs = ["warploom", "jobs", "--server", stale, *shown("alice")]
        while "has expired on" not in scratch.run(*jobs, expect=2).err:
            expect(time.monotonic() < time_out, "the certificate that has expired is not shown")
        wrong_steps(scratch, address, loopback, stale, elsewhere)
        signatures_and_revocation(scratch, address, socket)
        certificates_are_replaced(scratch, other, address)
        what_was_written_down(scratch, made)


if __name__ == "__main__":
    main()
