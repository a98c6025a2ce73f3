#!/usr/bin/env python3
"""The units of deploy/systemd: systemd accepts every setting in them, and the exposure score that it computes for them is below a limit."""

import re
import shutil
import subprocess

from harness import SOURCE, Scratch, expect, skip

# Upper limits of the exposure score that `systemd-analyze security` computes, from 0 (the service may do nothing) to 10. The worker's limit
# is higher, since it makes sandboxes and uses GPUs; its unit gives the reasons.
EXPOSURE = {"warploomd": 2.0, "warploom-worker": 4.0}


def analyze(*arguments):
    done = subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def main():
    if shutil.which("systemd-analyze") is None:
        skip("systemd-analyze is missing; it is in the package systemd")
    with Scratch() as scratch:
        # A root folder for systemd-analyze, with empty files for the programs and units to which the units refer.
        root = scratch.root / "root"
        units = root / "etc/systemd/system"
        (root / "usr/bin").mkdir(parents=True)
        units.mkdir(parents=True)
        for target in ("multi-user", "network-online", "sysinit", "basic", "shutdown"):
            (units / f"{target}.target").write_text("[Unit]\nDescription=stub\n")
        (units / "system.slice").write_text("[Unit]\nDescription=stub\n")
        for name in EXPOSURE:
            program = root / "usr/bin" / name
            program.write_text("")
            program.chmod(0o755)
            shutil.copy(SOURCE / f"deploy/systemd/{name}.service", units)
        for name, most in EXPOSURE.items():
            code, said = analyze("verify", f"--root={root}", "--man=no", f"{name}.service")
            expect(code == 0 and name not in said, f"{name}: {said}")
            code, said = analyze("security", "--offline=true", "--no-pager", f"--root={root}", f"{name}.service")
            level = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
            expect(level and float(level[1]) <= most, f"{name} may do more than {most}: {said}")
            print(name, level[1])
        (units / "warploomd.service").write_text((SOURCE / "deploy/systemd/warploomd.service").read_text().replace("ProtectSystem", "PortectSystem"))
        code, said = analyze("verify", f"--root={root}", "--man=no", "warploomd.service")
        expect("PortectSystem" in said, f"a setting with a wrong name is not found: {said}")


if __name__ == "__main__":
    main()
