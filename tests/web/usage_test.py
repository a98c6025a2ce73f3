#!/usr/bin/env python3
"""The page of usage in a real Chromium: without uses, with those of some teams, and with 10,000 kernels. A caller sees, on the page, in its JSON
and in the metrics, what its own team's programs ran; operators see all teams."""

import contextlib
import json
import shutil
import sqlite3
import ssl
import time

import graphs
import many_records
from browser import Browser, program
from harness import Scratch, expect, shown, skip
from layout import names_above
from web_test import SHOWN, certificate_key, clean, get, pictures, seen, start


def usage_of(base, context=None, **headers):
    code, _, text = get(f"{base}/api/usage", context, **headers)
    expect(code == 200, (code, text))
    return json.loads(text)


def empty(browser, base):
    seen(browser, f"{base}/usage", "No program has said in the last week what it runs", "no_counts")
    expect(browser.js("document.querySelector('nav a[aria-current]').innerText") == "Usage", "the page is in the navigation")
    expect(not browser.js("['sums', 'worth', 'misses'].some((one) => !document.getElementById(one).hidden)"), "nothing is shown")
    pictures(browser, "usage-empty")
    clean(browser, base)


def tune(scratch):
    """Searches one graph, takes the default schedule of another, and asks for a third in vain."""
    server = ["--server", "unix:a.s"]
    worker = scratch.start("warploom-worker", *server, "--devices", "fake", name="worker")
    for name, text in (("softmax.graph", graphs.SOFTMAX), ("scalar.graph", graphs.SCALAR), ("missed <b>.graph", graphs.SOFTMAX_MATMUL)):
        (scratch.root / name).write_text(text)
    scratch.run("warploom", "tune", "scalar.graph", *server, "--effort", "now")
    scratch.run("warploom", "tune", "softmax.graph", *server, "--trials", 8)
    for _ in range(2):
        scratch.run("warploom", "get", "missed <b>.graph", *server, expect=3)
    worker.kill()


def add_uses(path, teams, most):
    """Writes into the store that programs ran its newest records today and yesterday, some much more than others. Of every third, no launch was
    timed."""
    with contextlib.closing(sqlite3.connect(path)) as store:
        today = int(time.time()) // 86400
        keys = [row[0] for row in store.execute("SELECT key FROM records WHERE blessed = 1 ORDER BY id LIMIT ?", [most])]
        for number, key in enumerate(keys):
            for team in teams:
                for day in (today, today - 1):
                    calls, took = (1, 0) if number % 3 == 2 else (10**6 // (number + 1) + len(team), 10**13 // (number + 1))
                    store.execute("INSERT INTO uses (team, key, day, calls, ns) VALUES (?, ?, ?, ?, ?)", [team, key, day, calls, took])
        store.commit()
    return len(keys)


def own(browser, base):
    """Without a token, a caller of this machine sees what programs of no team ran."""
    usage = usage_of(base)
    expect([team["name"] for team in usage["teams"]] == [""] and usage["days"] == 2, usage["teams"])
    expect(usage["total"]["tuned"]["s"] > 0 and usage["total"]["default"]["s"] > 0 and usage["total"]["predicted"]["s"] == 0, usage["total"])
    expect(usage["kernels_in_all"] >= 200 and len(usage["kernels"]) == 50, usage["kernels_in_all"])
    expect({"softmax.graph", "scalar.graph"} <= {model["name"] for model in usage["models"]}, usage["models"])
    expect(usage["trials"] >= 8 and usage["cost_s"] > 0, (usage["trials"], usage["cost_s"]))
    expect([row["count"] for row in usage["missed"]] == [2] and "kernels are not in the store; " in usage["missed"][0]["why"], usage["missed"])
    metrics = get(f"{base}/metrics")[2]
    expect('warploom_kernel_time_seconds{kind="tuned",team=""}' in metrics and "vision" not in metrics + json.dumps(usage), metrics)
    expect(get(f"{base}/api/usage?limit=501")[0] == 400, "there is a limit")
    expect(len(json.loads(get(f"{base}/api/usage?limit=500")[2])["kernels"]) >= 200, "a longer list")
    seen(browser, f"{base}/usage", "Sums of the last 2 days", "Tuning has saved", "softmax.graph", "missed <b>.graph", "none: no worker measures its device now")
    expect(browser.js("document.querySelectorAll('#kernels tr').length") == 50, "the first kernels")
    widths = browser.js("[...document.querySelectorAll('#teams svg.share rect')].map((one) => Number(one.getAttribute('width')))")
    expect(len(widths) == 3 and abs(sum(widths) - 100) < 0.01 and widths[0] > 0 and widths[1] == 0 and widths[2] > 0, widths)
    pictures(browser, "usage")
    browser.size(400, 800)
    names_above(browser, "#facts")
    browser.shot("usage-narrow")
    browser.size(1280, 900)
    link = browser.js("[...document.querySelectorAll('#kernels tr')].find((row) => row.innerText.includes('scalar.graph')).querySelector('a').getAttribute('href')")
    clean(browser, base)
    seen(browser, base + link, "mul+exp f32[]", "winner")
    clean(browser, base)


def many(scratch, browser):
    many_records.multiply(scratch.path("b.db"), 10_000)
    add_uses(scratch.path("b.db"), [""], 10_000)
    _, where = start(scratch, "many", "b.db", "--listen", "unix:b.s")
    base = f"http://{where}"
    for what, most in (("the first time", 20), ("then", 1)):
        begun = time.monotonic()
        usage = usage_of(base)
        took = time.monotonic() - begun
        print(f"10,000 kernels, {what}: {took:.2f} s")
        expect(took < most, f"{what} it takes {took} s")
        time.sleep(1.1)  # the pages themselves keep an answer for a second
    expect(usage["kernels_in_all"] >= 9_990 and len(usage["kernels"]) == 50, usage["kernels_in_all"])
    seen(browser, f"{base}/usage", "The first 50 of")
    clean(browser, base)


def teams(scratch):
    """With tokens: a team sees its own, who shows nothing sees no usage, and operators see all teams."""
    scratch.certificates(["coordinator", "localhost", "127.0.0.1"])
    scratch.callers("team vision\nteam speech\n")
    vision, speech = (scratch.token(team, "client", "--team", team) for team in ("vision", "speech"))
    chief = scratch.token("chief", "operator")
    _, where = start(scratch, "c", "a.db", "--listen", "127.0.0.1:0,unix:c.s", "--callers", "callers", *shown("coordinator"))
    base = f"https://{where}"
    trusting = ssl.create_default_context(cafile=scratch.path("tls/ca.pem"))
    expect(get(f"{base}/api/usage", trusting)[0] == 401, "usage needs a token")
    code, _, text = get(f"{base}/metrics", trusting)
    expect(code == 200 and "warploom_jobs" in text and "warploom_kernel_time" not in text, "metrics without a token have no usage")
    for token, names in ((vision, ["vision"]), (speech, []), (chief, ["", "vision"])):
        claim = {"Authorization": f"Bearer {token}"}
        usage = usage_of(base, trusting, **claim)
        expect(sorted(team["name"] for team in usage["teams"]) == names, usage["teams"])
        expect({kernel["team"] for kernel in usage["kernels"]} == set(names), names)
        metrics = get(f"{base}/metrics", trusting, **claim)[2]
        expect([name for name in ("", "vision") if f'warploom_kernel_time_seconds{{kind="tuned",team="{name}"}}' in metrics] == names, metrics)
    expect("missed" not in json.dumps(usage_of(base, trusting, Authorization=f"Bearer {vision}")["missed"]), "what others missed")
    refused = (scratch.root / "c.log").read_text()
    expect(refused.count("GetUsage") == 1, "metrics without a token leave no line in the log")

    browser = Browser(scratch, certificate_key(scratch.path("tls/coordinator.pem")))
    browser.open(f"{base}/usage")
    browser.until("document.activeElement.id === 'token'", "it asks for a token")
    browser.type(chief)
    browser.press("Enter")
    browser.until(f"{SHOWN} && document.querySelectorAll('#teams tr').length === 2", "both teams are shown")
    pictures(browser, "usage-teams")
    clean(browser, base, allowed=["401"])
    browser.close()


def main():
    if program() is None:
        skip("Chromium is missing; `make test` installs it")
    with Scratch() as scratch:
        child, where = start(scratch, "a", "a.db", "--listen", "unix:a.s")
        browser = Browser(scratch)
        empty(browser, f"http://{where}")
        tune(scratch)
        browser.open("about:blank")  # a page asks again now and then, also while nobody answers
        child.process.terminate()
        expect(child.wait(60) == 0, "it ends")
        shutil.copy(scratch.path("a.db"), scratch.path("b.db"))
        many_records.multiply(scratch.path("a.db"), 200)
        expect(add_uses(scratch.path("a.db"), ["", "vision"], 1000) >= 202, "records")
        child, where = start(scratch, "again", "a.db", "--listen", "unix:a.s")
        own(browser, f"http://{where}")
        browser.open("about:blank")
        child.process.terminate()
        expect(child.wait(60) == 0, "it ends")
        many(scratch, browser)
        browser.close()
        teams(scratch)
        print("ok")


if __name__ == "__main__":
    main()
