#!/usr/bin/env python3
"""The proxy of a laptop, by the commands of deploy/README.md with other names of hosts, sockets and files: the certificates of a
coordinator, two nodes, a client and a cache are made; the coordinator's key is made; the proxy runs with a certificate and with a token; a
kernel is fetched through the proxy."""

import shutil

import graphs
from documented import documented, shell, start
from harness import Scratch, digest_of, expect, expect_same, listening, shown, until


def certificates(scratch):
    """Makes the certificates and copies them into the test's folder, which stands for the folders of all machines."""
    shell(scratch, documented("deploy/certificates.sh tls coordinator coordinator.lab", {"coordinator.lab": "localhost 127.0.0.1"}))
    for command in (
        documented("deploy/certificates.sh tls worker node1 node2"),
        documented("deploy/certificates.sh tls client alice"),
        documented("deploy/certificates.sh tls cache laptop"),
    ):
        shell(scratch, command)
    for path in (scratch.root / "tls").iterdir():
        if path.name != "ca.key":
            shutil.copy(path, scratch.root)


def site(scratch):
    """Starts the laboratory's coordinator with two workers that confirm each other's kernels, and tunes a graph. Returns its address."""
    # The workers node1 and node2 run on this machine. These rows of the callers file make the coordinator count them as two machines.
    rows = [f"machine {node} spiffe://warploom/warploom/worker/{node}\n" for node in ("node1", "node2")]
    scratch.callers("".join(rows), "callers.txt")
    token = shell(scratch, documented("warploomd token laptop --callers callers.txt --role cache")).stdout
    (scratch.root / "laptop.token").write_text(token)
    who = ["--callers", "callers.txt", "--trust-domain", "warploom", *shown("coordinator", "")]
    scratch.start("warploomd", "--store", "lab.db", "--listen", "localhost:0", *who, name="lab")
    lab = scratch.logged("lab", r"listening on (\S+)", "it listens")
    workers = [
        scratch.start("warploom-worker", "--server", lab, *shown(node, ""), "--devices", "fake", "--name", node, name=node)
        for node in ("node1", "node2")
    ]
    (scratch.root / "g.graph").write_text(graphs.EXP)
    scratch.run("warploom", "tune", "g.graph", "--server", lab, *shown("alice", ""), "--trials", 2)
    for worker in workers:
        worker.kill()
    scratch.run("warploom", "get", "g.graph", "--server", lab, *shown("alice", ""), "--out", "direct")
    shell(scratch, documented("warploom signer --server coordinator.lab:7411", {"coordinator.lab:7411": lab}))
    return lab


def main():
    with Scratch() as scratch:
        certificates(scratch)
        lab = site(scratch)
        socket = scratch.path("proxy")
        here = {"/tmp/warploom.sock": socket}
        proxy = documented("warploomd --store ~/.cache/warploom/proxy.db", {"coordinator.lab:7411": lab, **here})
        get = documented("warploom get model.onnx", {"model.onnx": "g.graph", **here})
        # The proxy authenticates to its upstream with a certificate, then with a token.
        shows = " --upstream-tls-cert laptop.pem --upstream-tls-key laptop.key"
        expect(shows in proxy, proxy)
        for name, text in (("certificate", proxy), ("token", proxy.replace(shows, " --upstream-token-file laptop.token"))):
            shutil.rmtree(scratch.root / ".cache", ignore_errors=True)
            shutil.rmtree(scratch.root / "tuned", ignore_errors=True)
            child = start(scratch, text, name)
            until(lambda: listening(socket), 30, "the proxy listens")
            until(lambda: scratch.run(*get.split(), expect=None).code == 0, 30, "the kernels come through the proxy")
            expect_same(digest_of(scratch.root / "tuned"), digest_of(scratch.root / "direct"))
            expect((scratch.root / ".cache/warploom/proxy.db").exists(), "the store is not where the command says")
            child.kill()
            (scratch.root / "proxy").unlink(missing_ok=True)
        print("a kernel came through a proxy with a certificate, and through one with a token")


if __name__ == "__main__":
    main()
