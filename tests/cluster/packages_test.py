#!/usr/bin/env python3
"""The Debian packages in a fresh Debian 12, which is downloaded: they install with nothing but what they depend on, a coordinator,
a worker and a client of them tune and run a graph, the units pass systemd's check, and removing them leaves nothing but settings."""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from harness import SOURCE, Scratch, expect, skip  # noqa: E402

import graphs  # noqa: E402

PACKAGES = sorted((SOURCE / "build/packages").glob("*.deb"))
# Makes the fresh system the root of its own namespaces, as containers do: after a mere chroot nobody may make namespaces.
ENTER = """set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
cd "$1"
pivot_root . mnt
umount -l /mnt
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp bash -c "$2"
"""
# Runs inside the fresh system. The candidates of the worker have a sandbox of their own.
SESSION = """set -e
cd /tmp
warploomd --store s.db --listen unix:/tmp/s > coordinator.log 2>&1 &
coordinator=$!
warploom-worker --server unix:/tmp/s --devices all --exit-when-idle 20 > worker.log 2>&1 &
worker=$!
trap 'kill $coordinator $worker' EXIT
printf 'out = "bundles"\\ntrials = 3\\n[[model]]\\nfile = "/tmp/g.graph"\\n' > batch.toml
timeout 120 warploom batch batch.toml --server unix:/tmp/s || { cat coordinator.log worker.log; exit 1; }
warploom run bundles/g/cpu --check
grep -q serving coordinator.log
/usr/share/warploom/deploy/certificates.sh tls worker node1
openssl verify -CAfile tls/ca.pem tls/node1.pem
"""


def run(*command, code=0, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    expect(done.returncode == code, f"{command}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def main():
    if os.geteuid() != 0:
        skip("only root can make a fresh system")
    if shutil.which("debootstrap") is None or len(PACKAGES) != 3:
        skip("debootstrap or the packages are missing; `make test-cluster` has both")
    with Scratch() as scratch:
        root = scratch.root / "root"
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
        run("debootstrap", "--variant=minbase", "bookworm", root, env=environment)
        for package in PACKAGES:
            shutil.copy(package, root / "srv")
        inside = ["chroot", root, "apt-get", "-q", "-y", "-o", "APT::Sandbox::User=root"]
        names = [f"/srv/{package.name}" for package in PACKAGES]
        run(*inside, "install", "--no-install-recommends", "systemd", "openssl", *names, env=environment)
        users = (root / "etc/passwd").read_text()
        expect("\nwarploom:" in users and "\nwarploom-worker:" in users, users)
        for unit in ("warploomd", "warploom-worker"):
            said = run("chroot", root, "systemd-analyze", "verify", "--man=no", f"{unit}.service")
            expect(unit not in said, said)
        (root / "tmp/g.graph").write_text(graphs.SOFTMAX)
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "bash", "-c", ENTER, "enter"]
        said = run(*enter, root, SESSION)
        expect("1 of 1 bundles" in said and "node1.pem: OK" in said, said)
        run(*inside, "remove", "warploom", env=environment)
        left = [str(path) for path in root.rglob("*warploom*") if path.is_file() and not path.is_relative_to(root / "var")]
        kept = {"etc/warploom/warploomd.toml", "etc/warploom/worker.env"}
        left = [path for path in left if str(pathlib.Path(path).relative_to(root)) not in kept | {f"srv/{p.name}" for p in PACKAGES}]
        expect(not left, left)
        print("installed, used and removed:", ", ".join(package.name for package in PACKAGES))


if __name__ == "__main__":
    main()
