#!/usr/bin/env python3
"""A chain of three real coordinators: kernels of the site are fetched unchanged through a laptop, upstreams are killed with SIGKILL while
kernels are fetched, kernels of the laptop arrive at the site, changed records are refused, and a circle of upstreams is found."""

import json
import re
import socket
import threading
import urllib.request

import graphs
from chain import Chain, killed_in_traffic, read_through, tuned_below
from harness import Scratch, digest_of, expect, expect_same, listening, shown, until


class Forger:
    """Listens on a Unix socket and forwards all bytes to and from an upstream. In the upstream's answers it replaces a text by another of
    the same length."""

    def __init__(self, scratch, upstream, before, after):
        expect(len(before) == len(after), "a message must keep its length")
        self.upstream, self.before, self.after = upstream, before.encode(), after.encode()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(scratch.path("forger"))
        self.listener.listen()
        self.open, self.forged = [self.listener], 0
        scratch.at_end.append(self.stop)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(self.upstream)
            self.open += [here, there]
            for source, target, changes in ((here, there, False), (there, here, True)):
                threading.Thread(target=self.pass_on, args=(source, target, changes), daemon=True).start()

    def pass_on(self, source, target, changes):
        try:
            while data := source.recv(1 << 20):
                if changes and self.before in data:
                    self.forged += 1
                    data = data.replace(self.before, self.after)
                target.sendall(data)
        except OSError:
            pass

    def stop(self):
        for one in self.open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()


def metric(chain, name, sample):
    with urllib.request.urlopen(chain.metrics_of(name) + "metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = re.search(rf"^{re.escape(sample)} (\S+)$", text, re.M)
    return float(found.group(1)) if found else None


def is_seen(chain):
    """Metrics and status show whether the laptop can reach its upstream. The laptop stays ready without the upstream."""
    expect(metric(chain, "laptop", "warploom_upstream_up") == 1, "the upstream is up")
    expect(metric(chain, "site", "warploom_upstream_up") is None, "the site has no upstream")
    expect(metric(chain, "laptop", 'warploom_upstream_requests_total{outcome="found"}') > 0, "something was found")
    chain.kill("team")
    until(lambda: chain.get("laptop", 999)[1] and metric(chain, "laptop", "warploom_upstream_up") == 0, 60, "the upstream is down")
    with urllib.request.urlopen(chain.metrics_of("laptop") + "readyz", timeout=30) as answer:
        expect(answer.status == 200, "the laptop is ready without its upstream")
    status = chain.scratch.run("warploom", "status", "--server", chain.address("laptop"), "--json", "-").json()
    expect(status["upstream"] == chain.address("team") and "cannot be reached" in status["upstream_problem"], status)
    chain.start("team")
    until(lambda: metric(chain, "laptop", "warploom_upstream_up") == 1, 60, "the upstream is back")
    log = chain.log("laptop")
    until(lambda: "is back" in chain.log("laptop"), 30, "the log says that it is back")
    expect(log.count("cannot be reached, what is here") <= 3, f"said again and again:\n{log}")


def hostile(chain):
    """A record that was changed between upstream and laptop is refused with a message. The unchanged record is accepted."""
    scratch = chain.scratch
    key, digest = next(iter(chain.keys("site").items()))
    signature = re.search(rb"[0-9a-f]{128}", chain.messages("site")[digest.upper()])[0].decode()
    forged = signature[:16].translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    forger = Forger(scratch, scratch.path("site"), signature[:16], forged)
    options = ["--upstream", f"unix:{scratch.path('forger')}", "--upstream-token-file", "team.token", "--signers", "signers"]
    victim = scratch.serve(scratch.path("victim"), *options, store="victim.db", name="victim")
    record, said = chain.get_record("victim", key)
    expect(forger.forged > 0, "nothing was forged")
    expect(record is None and "has a signature that is not of it" in said and "gave an answer that is not used" in said, said)
    expect("has a signature that is not of it" in (scratch.root / "victim.log").read_text(), "it is not in the log")
    victim.kill()
    direct = scratch.serve(scratch.path("victim"), "--upstream", chain.address("site"), *options[2:], store="victim.db", name="direct")
    until(lambda: chain.get_record("victim", key)[0], 30, "the record as it is")
    direct.kill()


def proxy_of_a_laptop(scratch):
    """A proxy with a configuration file and certificates. tests/fleet/laptop_test.py tests a proxy with command-line options."""
    scratch.certificates(["coordinator", "localhost", "127.0.0.1"], ["cache", "laptop"], ["client", "alice"])
    scratch.start("warploomd", "--store", "lab.db", "--listen", f"127.0.0.1:0,unix:{scratch.path('lab')}", "--trust-domain", "warploom", *shown("coordinator"), name="lab")
    lab = scratch.logged("lab", r"listening on ([^,]+),", "it listens")
    worker = scratch.start("warploom-worker", "--server", f"unix:{scratch.path('lab')}", "--devices", "fake", name="lab.worker")
    (scratch.root / "g.graph").write_text(graphs.EXP)
    scratch.run("warploom", "tune", "g.graph", "--server", lab, *shown("alice"), "--trials", 2)
    worker.kill()
    (scratch.root / "lab.signers").write_text(scratch.run("warploom", "signer", "--server", lab, *shown("alice")).out)
    settings = {
        "store": "proxy.db", "listen": f"unix:{scratch.path('proxy')}", "signers": "lab.signers", "offer": "confirmed", "upstream": lab,
        "upstream_tls_ca": "tls/ca.pem", "upstream_tls_cert": "tls/laptop.pem", "upstream_tls_key": "tls/laptop.key",
    }
    (scratch.root / "proxy.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
    scratch.start("warploomd", "--config", "proxy.toml", name="proxy")
    until(lambda: listening(scratch.path("proxy")), 30, "the proxy listens")
    how = ["--server", f"unix:{scratch.path('proxy')}", "--signers", "lab.signers", "--out", "proxied"]
    until(lambda: scratch.run("warploom", "get", "g.graph", *how, expect=None).code == 0, 30, "the kernels come through the proxy")
    scratch.run("warploom", "get", "g.graph", "--server", lab, *shown("alice"), "--out", "direct")
    expect_same(digest_of(scratch.root / "proxied"), digest_of(scratch.root / "direct"))


def circle(scratch):
    for name, other in (("a", "b"), ("b", "a")):
        scratch.start("warploomd", "--store", f"{name}.db", "--listen", f"unix:{scratch.path(name)}", "--upstream", f"unix:{scratch.path(other)}", name=name)
    for name in "ab":
        until(lambda: listening(scratch.path(name)), 30, f"{name} listens")

    def said():
        done = scratch.run("warploom", "get", "ab" * 32, "--server", f"unix:{scratch.path('a')}", expect=3)
        return "this coordinator is its own upstream" in done.err

    until(said, 30, "the circle is found")


def wrong_steps(scratch):
    daemon = ["warploomd", "--store", "w.db", "--listen", f"unix:{scratch.path('w')}"]
    steps = [
        (["--offer", "some", "--upstream", "unix:x"], "--offer: expected none, confirmed or all"),
        (["--offer", "all"], "expected --upstream ADDRESS with them"),
        (["--upstream", "192.0.2.1:7411"], "is on another machine, where nothing goes in plain text"),
        (["--upstream", "unix:x", "--signers", "none"], "--signers: cannot read none: "),
    ]
    for options, says in steps:
        done = scratch.run(*daemon, *options, expect=1)
        expect(says in done.err, done.err)


def main():
    with Scratch() as scratch:
        wrong_steps(scratch)
        chain = Chain(scratch)
        workers = chain.workers("site")
        read_through(chain, [3, 5])
        killed_in_traffic(chain, "site", [3, 5], [7, 9])
        killed_in_traffic(chain, "team", [3, 5, 7], [11, 13])
        is_seen(chain)
        for worker in workers:
            worker.kill()
        workers = chain.workers("laptop")
        tuned_below(chain, [15, 17])
        hostile(chain)
        proxy_of_a_laptop(scratch)
        circle(scratch)
        print(f"three coordinators, two of them killed; {len(chain.keys('site'))} kernels at the site,", json.dumps(sorted(chain.running)))


if __name__ == "__main__":
    main()
