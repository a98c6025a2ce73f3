#!/usr/bin/env python3
"""The Debian packages in a fresh Debian 12, which is downloaded, by the commands of deploy/README.md. They install with only their
dependencies; the installed coordinator, worker and client tune and run a graph; the booted system's services tune a graph as well and are
restarted when they are killed; removing the packages leaves only settings."""

import os
import pathlib
import shutil
import subprocess

import graphs
from documented import documented
from harness import SOURCE, Scratch, expect, skip

SOCKET = "unix:/run/warploom/warploom.sock"
# This script makes the folder of the fresh system the root of a mount namespace of its own, as in a container. After a mere chroot,
# processes may not make namespaces.
ENTER = """set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
cd "$1"
pivot_root . mnt
umount -l /mnt
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp bash -c "$2"
"""
# This script runs inside the fresh system. The worker runs its candidates in a sandbox within it.
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

# This script runs as a service of the system that has booted. The user nobody may tune, but may not drain, because a drain needs the role operator.
BOOTED = f"""set -ex
cd /var/tmp
{documented("systemctl enable --now warploomd")}
{documented("systemctl enable --now warploom-worker")}
again() {{ for i in $(seq 300); do "$@" && return; sleep 0.1; done; return 1; }}
has() {{ [ "$(systemctl show --value --property "$2" "$1")" = "$3" ]; }}
setpriv --reuid=nobody --regid=nogroup --clear-groups \
  env XDG_CACHE_HOME=/var/tmp/nobody timeout 120 warploom tune /srv/g.graph --trials 3 --server {SOCKET} --json - > tuned.json
setpriv --reuid=nobody --regid=nogroup --clear-groups warploom drain --server {SOCKET} 2> refused && exit 1
grep "Drain needs the role operator" refused
for unit in warploomd warploom-worker; do systemctl kill --kill-whom=main --signal=KILL $unit; done
for unit in warploomd warploom-worker; do again has $unit NRestarts 1; again has $unit ActiveState active; done
timeout 120 warploom tune /srv/other.graph --trials 3 --server {SOCKET} --out other
warploom run other --check
systemctl stop warploom-worker
has warploom-worker Result success
grep '"measured_by"' tuned.json
echo booted
"""
SERVICE = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
Environment=HOME=/root
ExecStart=/bin/bash -c "bash /srv/booted.sh > /srv/booted.log 2>&1 || journalctl --boot --unit warploomd --unit warploom-worker >> /srv/booted.log"
ExecStartPost=/bin/systemctl --no-block poweroff
[Install]
WantedBy=multi-user.target
"""


def run(*command, code=0, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    expect(done.returncode == code, f"{command}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def boot(root):
    """Boots the system as a container, without a network, and runs BOOTED in it. Returns the reason if this machine cannot, or None."""
    enter = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", f"--directory={root}"]
    probe = subprocess.run([*enter, "true"], capture_output=True, text=True, timeout=60)
    if probe.returncode != 0:
        return f"this machine boots no container ({probe.stderr.strip()})"
    (root / "srv/booted.sh").write_text(BOOTED)
    (root / "srv/g.graph").write_text(graphs.SOFTMAX)
    (root / "srv/other.graph").write_text(graphs.EXP)
    (root / "etc/systemd/system/booted.service").write_text(SERVICE)
    run("chroot", root, "systemctl", "enable", "booted")
    done = subprocess.run([*enter, "--boot"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    log = root / "srv/booted.log"
    said = log.read_text() if log.exists() else done.stdout[-4000:] + done.stderr[-4000:]
    expect(said.endswith("\nbooted\n"), said)
    return None


def install(root, command):
    """Runs an `apt-get install` command of deploy/README.md in the fresh system."""
    quiet = "apt-get -q -y -o APT::Sandbox::User=root install --no-install-recommends"
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
    run("chroot", root, "bash", "-ec", f"cd /srv; {command.replace('apt-get install', quiet)}", env=environment)


def main():
    if os.geteuid() != 0:
        skip("only root can make a fresh system")
    if shutil.which("debootstrap") is None:
        skip("debootstrap is missing; `make test-cluster` installs it")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    run("bash", "-ec", documented("make packages"), cwd=SOURCE, env=environment)
    packages = sorted((SOURCE / "build/packages").glob("*.deb"))
    expect(len(packages) == 3, packages)
    with Scratch() as scratch:
        root = scratch.root / "root"
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
        run("debootstrap", "--variant=minbase", "--include=systemd-sysv,dbus,openssl", "bookworm", root, env=environment)
        (root / "srv/build/packages").mkdir(parents=True)
        for package in packages:
            shutil.copy(package, root / "srv/build/packages")
        install(root, documented("apt-get install ./build/packages/warploom_*.deb ./build/packages/warploom-coordinator"))
        install(root, documented("apt-get install ./build/packages/warploom_*.deb ./build/packages/warploom-worker"))
        users = (root / "etc/passwd").read_text()
        expect("\nwarploom:" in users and "\nwarploom-worker:" in users, users)
        for unit in ("warploomd", "warploom-worker"):
            said = run("chroot", root, "systemd-analyze", "verify", "--man=no", f"{unit}.service")
            expect(unit not in said, said)
        (root / "tmp/g.graph").write_text(graphs.SOFTMAX)
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "bash", "-c", ENTER, "enter"]
        said = run(*enter, root, SESSION)
        expect("1 of 1 bundles" in said and "node1.pem: OK" in said, said)
        unbooted = boot(root)
        shutil.rmtree(root / "srv")
        run("chroot", root, "apt-get", "-q", "-y", "remove", "warploom", env=environment)
        left = [str(path) for path in root.rglob("*warploom*") if path.is_file() and not path.is_relative_to(root / "var")]
        kept = {"etc/warploom/warploomd.toml", "etc/warploom/callers.txt", "etc/warploom/worker.env"}
        left = [path for path in left if str(pathlib.Path(path).relative_to(root)) not in kept]
        expect(not left, left)
        print("installed, used, removed:", ", ".join(package.name for package in packages) + ";", unbooted or "booted, with both services")


if __name__ == "__main__":
    main()
