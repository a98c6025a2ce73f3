#!/usr/bin/env python3
"""promtool of Prometheus finds that the metrics of a coordinator follow Prometheus's conventions, and the tests of the alerts in
deploy/prometheus pass. The coordinator has every metric that an alert names."""

import re
import shutil
import subprocess
import urllib.request

import graphs
from documented import documented, shell
from harness import SOURCE, Scratch, expect, skip

RULES = SOURCE / "deploy/prometheus"


def promtool(*arguments, **options):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)
    expect(done.returncode == 0, f"promtool {arguments}: {done.stdout}\n{done.stderr}")


def main():
    if shutil.which("promtool") is None:
        skip("promtool is missing; `make test-cluster` installs it")
    promtool("check", "rules", RULES / "alerts.yml")
    with Scratch() as scratch:
        for name in ("alerts.yml", "alerts_test.yml"):
            shutil.copy(RULES / name, scratch.root)
        shell(scratch, documented("promtool test rules alerts_test.yml"))
        (scratch.root / "prometheus.yml").write_text(documented("scrape_configs:"))
        promtool("check", "config", scratch.path("prometheus.yml"))
        scratch.start("warploomd", "--store", "a.db", "--listen", "unix:s", "--http", "127.0.0.1:0", name="coordinator")
        where = scratch.logged("coordinator", r"metrics on (\S+)", "it serves metrics")
        worker = scratch.start("warploom-worker", "--server", "unix:s", "--devices", "fake", "--name", "lost")
        (scratch.root / "g.graph").write_text(graphs.SOFTMAX)
        scratch.run("warploom", "tune", "g.graph", "--server", "unix:s", "--trials", 8)
        worker.kill()
        with urllib.request.urlopen(f"http://{where}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        promtool("check", "metrics", input=text)
        used = set(re.findall(r"warploom_\w+", "".join(line for line in open(RULES / "alerts.yml") if "description" not in line)))
        known = set(re.findall(r"^# TYPE (\w+)", text, re.M)) | {"warploom_leases_lost_total"}
        expect({re.sub(r"_bucket$", "", name) for name in used} <= known, used - known)
        print("promtool is content")


if __name__ == "__main__":
    main()
