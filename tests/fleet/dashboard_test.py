#!/usr/bin/env python3
"""The Grafana dashboard of deploy/grafana: it has the fields that Grafana requires, its panels do not overlap, and after a job a real
coordinator has every metric and label of the dashboard's queries."""

import itertools
import json
import re
import shutil
import subprocess
import urllib.request

import graphs
from harness import SOURCE, Scratch, expect, until

DASHBOARD = SOURCE / "deploy/grafana/warploom.json"
WIDTH = 24  # number of columns of Grafana's grid
ADDED = {"instance", "le"}  # labels that Prometheus adds itself, and the label of histogram buckets


def metrics(where):
    with urllib.request.urlopen(f"http://{where}/metrics", timeout=30) as answer:
        return answer.read().decode()


def exported(scratch):
    """Runs a job; returns a dict of the coordinator's metrics: metric -> its labels."""
    scratch.start("warploomd", "--store", "a.db", "--listen", "unix:s", "--http", "127.0.0.1:0", name="coordinator")
    where = scratch.logged("coordinator", r"metrics on (\S+)", "it serves metrics")
    scratch.start("warploom-worker", "--server", "unix:s", "--devices", "fake", name="worker")
    (scratch.root / "g.graph").write_text(graphs.SOFTMAX)
    # A drained coordinator gives out no leases. Candidates therefore wait, and the metric of waiting candidates gets their target as a
    # label.
    scratch.run("warploom", "drain", "--server", "unix:s")
    tune = scratch.start("warploom", "tune", "g.graph", "--server", "unix:s", "--trials", 4, name="tune")
    until(lambda: "warploom_queue_candidates{" in metrics(where), 60, "candidates wait")
    scratch.run("warploom", "undrain", "--server", "unix:s")
    expect(tune.wait(120) == 0, (scratch.root / "tune.log").read_text())
    known = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", metrics(where), re.M):
        known.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return known


def has_the_form(dashboard):
    for key, kind in {"title": str, "uid": str, "schemaVersion": int, "panels": list, "templating": dict, "time": dict}.items():
        expect(isinstance(dashboard.get(key), kind), f"{key} is not {kind.__name__}")
    expect("id" not in dashboard, "an id belongs to one Grafana")
    panels = dashboard["panels"]
    ids = [panel["id"] for panel in panels]
    expect(len(set(ids)) == len(ids), f"two panels have one id: {ids}")
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        expect(0 <= at["x"] and at["x"] + at["w"] <= WIDTH and at["h"] > 0, panel["title"])
        cells = set(itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])))
        expect(not cells & taken, f"{panel['title']} lies over another panel")
        taken |= cells
        if panel["type"] == "row":
            continue
        expect(panel["type"] in ("stat", "timeseries") and panel["title"] and panel["targets"], panel)
        expect(panel["fieldConfig"]["defaults"]["unit"] and panel["datasource"]["uid"] == "${datasource}", panel["title"])
        names = [target["refId"] for target in panel["targets"]]
        expect(len(set(names)) == len(names), f"{panel['title']}: {names}")


def asks_for_what_there_is(dashboard, known):
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    queries += [variable["query"]["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    variables = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
    used = set()
    for query in queries:
        expect(set(re.findall(r"\$(\w+)", query)) <= variables, f"a variable that is not there: {query}")
        names = set(re.findall(r"\b(?:warploom|process)_\w+", query))
        expect(names and names <= known.keys(), f"{names - known.keys()} is not exported: {query}")
        used |= names
        labels = set().union(*(known[name] for name in names)) | ADDED
        asked = re.findall(r"by \(([\w, ]+)\)", query) + re.findall(r"[{,](\w+)(?:=|!)", query)
        expect({label for some in asked for label in re.split(r", *", some)} <= labels, f"labels {asked}, known {labels}: {query}")
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known if name.startswith("warploom_")}
    shown = {re.sub(r"_bucket$", "", name) for name in used}
    expect(families <= shown, f"not in any panel: {families - shown}")
    return queries


def parses(queries, scratch):
    """Checks the queries with the parser of Prometheus, if promtool is installed."""
    if shutil.which("promtool") is None:
        return
    rules = [{"record": f"r{i}", "expr": re.sub(r"\$__rate_interval", "5m", query)} for i, query in enumerate(queries[:-1])]
    (scratch.root / "rules.json").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", scratch.path("rules.json")], capture_output=True, text=True, timeout=60)
    expect(done.returncode == 0, done.stdout + done.stderr)


def main():
    dashboard = json.loads(DASHBOARD.read_text())
    has_the_form(dashboard)
    with Scratch() as scratch:
        parses(asks_for_what_there_is(dashboard, exported(scratch)), scratch)
    print("ok")


if __name__ == "__main__":
    main()
