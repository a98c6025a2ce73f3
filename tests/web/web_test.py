#!/usr/bin/env python3
"""The pages of a real coordinator in a real Chromium: an empty store; a job that waits, runs and ends; every page of a job; records; names
that contain markup; operation by keyboard only; light and dark colours; many records; and, with TLS and tokens, what each caller sees. The
pages write nothing to the console and make no requests to other addresses. WARPLOOM_SHOTS=FOLDER keeps pictures of the pages."""

import base64
import contextlib
import hashlib
import json
import pathlib
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import graphs  # noqa: E402
import many_records  # noqa: E402
from browser import Browser, program  # noqa: E402
from harness import Scratch, expect, shown, skip, until  # noqa: E402
from layout import fits, large, names_above  # noqa: E402

HOSTILE = "<script>document.title='taken'<!--<img src=x onerror=alert(1)>.graph".replace("/", "")
SHOWN = "document.body.dataset.shown === 'yes'"


def get(url, context=None, **headers):
    """Returns the status, the headers and the text of an HTTP answer."""
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def start(scratch, name, store, *options):
    child = scratch.start("warploomd", "--store", store, "--http", "127.0.0.1:0", *options, name=name)
    return child, scratch.logged(name, r"metrics on (\S+)", "it serves pages")


def clean(browser, base, allowed=()):
    """Fails if, since the last call, there were problems other than the allowed ones or requests to other addresses."""
    problems = [one for one in browser.problems if not any(part in one for part in allowed)]
    expect(not problems, "\n".join(problems))
    others = [url for url in browser.events if not url.startswith((base, "about:", "data:", "chrome:"))]
    expect(not others, f"asked elsewhere: {others}")
    browser.problems, browser.events = [], []


def seen(browser, url, *texts):
    browser.open(url)
    browser.until(SHOWN, f"{url} shows something")
    for text in texts:
        browser.until(f"document.body.innerText.includes({json.dumps(text)})", f"{url} says {text}")


def pictures(browser, name):
    """Takes pictures of the page in light and dark colours. The pictures differ, and in both the text has enough contrast. The page fits
    a narrow screen."""
    shots = {}
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        shots[scheme] = browser.shot(f"{name}-{scheme}")
        colours = browser.js("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
        levels = [sum(int(part) for part in colour[4:-1].split(",")) for colour in colours]
        expect(abs(levels[0] - levels[1]) > 400, f"{scheme}: text and page are {colours}")
    expect(shots["light"] != shots["dark"], f"{name} looks the same in the dark")
    browser.size(400, 800)
    fits(browser, 400)
    browser.size(1280, 900)


def empty(browser, base):
    seen(browser, f"{base}/", "There are no jobs yet")
    seen(browser, f"{base}/workers", "No worker has registered")
    seen(browser, f"{base}/records", "No record is here")
    clean(browser, base)
    # For every HTTP answer with status 404, the browser itself writes a message to the console, which clean() must allow.
    seen_missing = f"{base}/jobs/7"
    browser.open(seen_missing)
    browser.until("document.getElementById('status').innerText.startsWith('There is no job \"7\"')", "it says that the job is not there")
    clean(browser, base, allowed=["404"])


def running(scratch, browser, base, server):
    """Follows a job from the queue to its end, on a page that is not reloaded. Returns the worker."""
    (scratch.root / HOSTILE).write_text(graphs.SOFTMAX_MATMUL)
    tune = scratch.start("warploom", "tune", HOSTILE, *server, "--trials", 12, name="tune")
    browser.open(f"{base}/")
    browser.until("document.querySelectorAll('#jobs tr').length === 1 && document.body.innerText.includes('queued')", "the job is listed")
    name = browser.js("document.querySelector('#jobs td').innerText")
    expect(name == HOSTILE, name)
    seen(browser, f"{base}/jobs/1", "State of the job: queued.")
    browser.js("window.first = true")
    worker = scratch.start("warploom-worker", *server, "--devices", "fake", "--name", "<b>somebody</b>")
    doing = until(lambda: [one for row in json.loads(get(f"{base}/api/workers")[2])["workers"] for one in row["doing"] if one["purpose"] == "search"], 60, "the worker searches")
    expect(doing[0]["job"] == 1 and doing[0]["purpose"] == "search" and doing[0]["candidates"] > 0 and len(doing[0]["key"]) == 64, doing)
    browser.until("document.body.innerText.includes('State of the job: running.') && document.querySelector('#groups a') !== null", "the job runs")
    browser.js("window.held = [...document.querySelectorAll('#groups a')]; window.held[0].focus(); window.was = document.getElementById('groups').innerText")
    browser.until("document.body.innerText.includes('State of the job: succeeded.')", "the job ends", 300)
    expect(browser.js("window.first") is True, "the page was loaded again")
    expect(browser.js("document.getElementById('groups').innerText !== window.was"), "the groups have changed")
    # Which groups the page lists depends on measured times, so the link to a group that had the focus may have been removed.
    expect(browser.js("[...document.querySelectorAll('#groups a')].every((link) => window.held.includes(link))"), "links were made anew")
    expect(browser.js("document.activeElement === window.held[0] || !window.held[0].isConnected"), "the focus was lost while the page followed the job")
    expect(tune.wait(120) == 0, (scratch.root / "tune.log").read_text())
    return worker


def at_widths(browser, charts):
    """On narrow and wide screens, charts are large and legible, and the page fits the screen, with names above values if it is narrow."""
    large(browser, charts)
    browser.size(400, 800)
    names_above(browser, "#facts")
    browser.size(1280, 900)


def job_pages(browser, base):
    seen(browser, f"{base}/jobs/1", HOSTILE, "before, ", "Roofline")
    expect(browser.js("document.title.startsWith('Job 1: <script>')") and browser.js("document.querySelectorAll('b').length") == 0, "names are text")
    browser.until("document.querySelectorAll('#groups svg polyline.best').length > 0", "curves are drawn")
    browser.until("document.querySelectorAll('#roofline-chart circle.after').length === document.querySelectorAll('#kernels tr').length", "every kernel is in the roofline")
    expect(browser.js("document.querySelectorAll('#before-chart rect.bar-before').length") > 0, "before and after")
    expect(browser.js("document.querySelectorAll('#search-chart .curve').length === document.querySelectorAll('#search-chart .keys li').length"), "every curve has a name")
    at_widths(browser, "#search-chart svg, #roofline-chart svg")
    pictures(browser, "job")
    browser.js("document.querySelector('#groups a').click()")
    browser.until(f"location.pathname.startsWith('/jobs/1/groups/') && {SHOWN} && document.querySelectorAll('#curve circle.dot').length > 3", "a group has its curve")
    expect("Best time against trial number" in browser.text() and "Plan" in browser.text(), browser.text())
    better = browser.js("[...document.querySelectorAll('#better tr')].map((row) => Number(row.cells[0].innerText))")
    expect(better and better == sorted(set(better)), better)
    at_widths(browser, "#curve svg")
    pictures(browser, "group")
    browser.js("document.querySelector('#winner-facts a').click()")
    browser.until(f"location.pathname.startsWith('/records/') && {SHOWN}", "a record is shown")
    expect("winner" in browser.text() and "graph {" in browser.text(), browser.text())
    pictures(browser, "record")
    browser.open(f"{base}/jobs/1/graph")
    browser.until("document.querySelectorAll('#picture rect').length >= 5", "the graph is drawn")
    expect(re.search(r"\b(1 kernel|(?!1 )\d+ kernels) instead of", browser.text()) and "fused:" in browser.text(), browser.text())
    filled = browser.js("[...document.querySelectorAll('#picture path')].filter((one) => getComputedStyle(one).fill !== 'none').length")
    expect(filled == 0, f"{filled} lines of the picture are filled")
    shown_numbers = browser.js("[...document.querySelectorAll('#picture text')].map((one) => one.textContent)")
    prices = browser.js("[...document.querySelectorAll('#reasons li')].map((one) => /^(?:fused|alone): ([^;]*)/.exec(one.textContent)?.[1]).filter(Boolean)")
    expect(prices and all(f"g{number}: {price}" in shown_numbers for number, price in enumerate(prices)), f"{prices} are not all in {shown_numbers}")
    pictures(browser, "graph")
    seen(browser, f"{base}/workers", "<b>somebody</b>", "alive")
    pictures(browser, "workers")
    seen(browser, f"{base}/records", "somebody")
    pictures(browser, "records")
    seen(browser, f"{base}/")
    pictures(browser, "jobs")
    clean(browser, base)


def keyboard(browser, base):
    """The keyboard leads from the list to a group and to the workers. A link keeps the focus while the page is updated."""
    seen(browser, f"{base}/")
    browser.press("Tab")
    expect(browser.focused()[1] == "#content", browser.focused())
    browser.press("Enter")
    expect(browser.js("document.activeElement.id") == "content", "the first link leads to the content")
    browser.tab_to("/jobs/1")
    asked = len(browser.events)
    browser.until("true", "")
    until(lambda: browser.js("1") and len([url for url in browser.events[asked:] if "/api/jobs" in url]) >= 2, 60, "the page asks again")
    expect(browser.focused()[1] == "/jobs/1", f"the focus went to {browser.focused()}")
    browser.press("Enter")
    browser.until(f"location.pathname === '/jobs/1' && {SHOWN} && document.querySelectorAll('#groups a').length > 0", "Enter opens the job")
    browser.tab_to(browser.js("document.querySelector('#groups a').getAttribute('href')"))
    browser.press("Enter")
    browser.until(f"location.pathname.startsWith('/jobs/1/groups/') && {SHOWN}", "Enter opens the group")
    browser.tab_to("/workers")
    browser.press("Enter")
    browser.until(f"location.pathname === '/workers' && {SHOWN}", "Enter opens the workers")
    headings = browser.js("[...document.querySelectorAll('h1,h2,h3')].map((one) => Number(one.tagName[1]))")
    expect(headings[0] == 1 and headings.count(1) == 1, headings)
    clean(browser, base)


def answers(base):
    """The headers of the JSON answers, and the messages for wrong requests."""
    code, headers, text = get(f"{base}/api/jobs")
    expect(code == 200 and json.loads(text)["jobs"][0]["label"] == HOSTILE, text)
    expect("script-src 'self'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff", headers)
    expect(get(f"{base}/api/jobs", If_None_Match=headers["ETag"])[0] == 304, "what is known is not sent again")
    code, headers, _ = get(f"{base}/")
    expect(code == 200 and "'unsafe" not in headers["Content-Security-Policy"], headers)
    for path, code, says in (
        ("/api/jobs?before=x", 400, "before: expected an integer"),
        ("/api/jobs?limit=100000", 400, "limit: expected an integer from 1 to 200"),
        ("/api/jobs/1/groups/none", 404, "no group of key"),
        ("/api/jobs/x", 404, "there is no job"),
        ("/api/records?after=x", 400, "expected one that a page of records gave"),
        ("/api/records/none", 404, "no record of none"),
        ("/api/other", 404, ""),
        ("/web/page.cpp", 404, ""),
        ("/web/../web.cpp", 404, ""),
    ):
        found = get(base + path)
        expect(found[0] == code and says in found[2], (path, found))
    code, _, text = get(f"{base}/api/jobs", Host="pages.example:80")
    expect(code == 403 and "localhost" in text, (code, text))
    request = urllib.request.Request(f"{base}/api/jobs", method="DELETE")
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=30)
        raise AssertionError("something was deleted")


def many(scratch, browser):
    """Pages of 10,000 records of several models and devices."""
    many_records.multiply(scratch.path("a.db"), 10_000)
    _, where = start(scratch, "many", "a.db", "--listen", "unix:a.s")
    base = f"http://{where}"
    seen(browser, f"{base}/records", "Older records")
    expect(browser.js("document.querySelectorAll('#records tr').length") == 50, "a page of records")
    first = browser.js("document.querySelector('#records th').innerText")
    browser.tab_to(browser.js("document.querySelector('#pager a[rel=next]').getAttribute('href')"), most=400)
    browser.press("Enter")
    browser.until(f"location.search.includes('after=') && {SHOWN} && document.querySelectorAll('#records tr').length === 50", "the next page")
    expect(browser.js("document.querySelector('#records th').innerText") != first, "other records")
    pictures(browser, "many-records")
    clean(browser, base)
    machines = json.loads(get(f"{base}/api/records-by")[2])["machines"]
    browser.open(f"{base}/records")
    browser.until("document.querySelectorAll('#machine option').length > 5 && document.querySelectorAll('#model option').length > 200", "what to choose from")
    browser.js("document.getElementById('model').value = 'model-007.onnx'; document.querySelector('#filter button').focus()")
    browser.press("Enter")
    browser.until(f"location.search.includes('model-007') && {SHOWN} && document.querySelectorAll('#records tr').length > 0", "the records of a model")
    for wanted in ({"model": "model-007.onnx"}, {"machine": machines[0]["name"]}, {"model": "model-007.onnx", "machine": machines[0]["name"]}):
        found = json.loads(get(f"{base}/api/records?limit=200&{urllib.parse.urlencode(wanted)}")[2])["records"]
        expect(found and all(f"{record['target']} {record['device']}" == wanted.get("machine", f"{record['target']} {record['device']}") for record in found), wanted)
        expect("machine" in wanted or len(found) == 50, f"{len(found)} of {wanted}")
    expect(json.loads(get(f"{base}/api/records?model=none")[2])["records"] == [], "no record of a model that is not there")
    pictures(browser, "records-of-model")
    clean(browser, base)
    listed, after = set(), ""
    while after is not None:
        page = json.loads(get(f"{base}/api/records?limit=200&after={after}")[2])
        listed |= {record["digest"] for record in page["records"]}
        after = page["next"]
    expect(len(listed) >= 10_000, f"{len(listed)} records are listed")


def certificate_key(path):
    key = subprocess.run(["openssl", "x509", "-in", path, "-pubkey", "-noout"], check=True, capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, check=True, capture_output=True).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def secure(scratch):
    """Over HTTPS, only callers that may read see anything, and a team sees only its own jobs."""
    scratch.certificates(["coordinator", "localhost", "127.0.0.1"], ["client", "c"], ["worker", "w"])
    scratch.callers("team vision\nteam speech\n")
    vision, speech = (scratch.token(team, "client", "--team", team) for team in ("vision", "speech"))
    works = scratch.token("works", "worker")
    tls = [*shown("coordinator"), "--trust-domain", "warploom"]
    _, where = start(scratch, "b", "b.db", "--listen", "127.0.0.1:0,unix:b.s", "--callers", "callers", *tls)
    server = scratch.logged("b", r"listening on ([^,]+),", "it listens")
    base = f"https://{where}"
    (scratch.root / "vision.graph").write_text(graphs.EXP)
    calls = ["--server", server, "--tls-ca", "tls/ca.pem", "--token-file"]
    scratch.start("warploom-worker", *calls, "works.token", "--devices", "fake", name="tls-worker")
    scratch.run("warploom", "tune", "vision.graph", *calls, "vision.token", "--trials", 4)

    trusting = ssl.create_default_context(cafile=scratch.path("tls/ca.pem"))
    for path in ("/healthz", "/readyz", "/metrics", "/", "/web/page.js"):
        expect(get(base + path, trusting)[0] == 200, f"{path} needs no token")
    code, headers, text = get(f"{base}/api/jobs", trusting)
    expect(code == 401 and headers["WWW-Authenticate"] == "Bearer" and "vision.graph" not in text, (code, text))
    for claim, code, says in (
        ("Bearer wrong", 401, "not, or no longer, known here"),
        (f"Bearer {works}", 403, "needs the role client or operator"),
        (f"Basic {vision}", 401, "expected Bearer"),
        (f"Bearer {vision}", 200, "vision.graph"),
    ):
        found = get(f"{base}/api/jobs", trusting, Authorization=claim)
        expect(found[0] == code and says in found[2], (claim, found))
    # A team gets 404 for everything of another team: the job, its groups, kernels, graph and records.
    key = json.loads(get(f"{base}/api/jobs/1", trusting, Authorization=f"Bearer {vision}")[2])["groups"][0]["key"]
    record = json.loads(get(f"{base}/api/records", trusting, Authorization=f"Bearer {vision}")[2])["records"][0]["digest"]
    for path in ("/api/jobs/1", "/api/jobs/1/curves", f"/api/jobs/1/groups/{key}", "/api/jobs/1/kernels", "/api/jobs/1/graph", f"/api/records/{record}"):
        own, other = (get(base + path, trusting, Authorization=f"Bearer {one}")[0] for one in (vision, speech))
        expect(own == 200 and other == 404, (path, own, other))
    for path in ("/api/jobs", "/api/records"):
        found = json.loads(get(base + path, trusting, Authorization=f"Bearer {speech}")[2])
        expect(found[path.split("/")[-1]] == [], found)
    trusting.load_cert_chain(scratch.path("tls/c.pem"), scratch.path("tls/c.key"))
    expect(get(f"{base}/api/jobs", trusting)[0] == 200, "a client's certificate")
    worker = ssl.create_default_context(cafile=scratch.path("tls/ca.pem"))
    worker.load_cert_chain(scratch.path("tls/w.pem"), scratch.path("tls/w.key"))
    expect(get(f"{base}/api/jobs", worker)[0] == 403, "a worker's certificate")

    browser = Browser(scratch, certificate_key(scratch.path("tls/coordinator.pem")))
    browser.open(f"{base}/")
    browser.until("document.activeElement.id === 'token' && document.body.innerText.includes('asks who you are')", "it asks for a token")
    pictures(browser, "token")
    browser.type("wrong")
    browser.press("Enter")
    browser.until("document.activeElement.id === 'token' && document.body.innerText.includes('ask whoever runs the coordinator for one')", "a wrong token")
    clean(browser, base, allowed=["401"])
    browser.type(vision)
    browser.press("Enter")
    browser.until(f"{SHOWN} && document.body.innerText.includes('vision.graph')", "the job is listed")
    browser.tab_to("/jobs/1")
    browser.press("Enter")
    browser.until(f"location.pathname === '/jobs/1' && {SHOWN} && document.body.innerText.includes('State of the job: succeeded')", "the token is kept for the next page")
    expect(browser.js("document.cookie") == "" and browser.js("localStorage.length") == 0, "the token is nowhere else")
    browser.js("document.getElementById('forget').click()")
    browser.until("document.activeElement.id === 'token'", "a token that is forgotten")
    clean(browser, base, allowed=["401"])
    browser.close()

    address = tuple(where.rsplit(":", 1))
    before = ssl.get_server_certificate(address, timeout=30)
    for name in ("coordinator.pem", "coordinator.key"):
        (scratch.root / "tls" / name).unlink()
    scratch.certificates(["coordinator", "localhost", "127.0.0.1"])
    expect(ssl.get_server_certificate(address, timeout=30) != before, "a certificate that is replaced is shown at once")


def main():
    if program() is None:
        skip("Chromium is missing; `make test` installs it")
    with Scratch() as scratch:
        child, where = start(scratch, "a", "a.db", "--listen", "unix:a.s")
        base, server = f"http://{where}", ["--server", "unix:a.s"]
        browser = Browser(scratch)
        empty(browser, base)
        worker = running(scratch, browser, base, server)
        job_pages(browser, base)
        keyboard(browser, base)
        answers(base)
        browser.open("about:blank")
        worker.kill()
        child.process.terminate()
        expect(child.wait(60) == 0, "it ends")
        many(scratch, browser)
        browser.close()
        secure(scratch)
        print("ok")


if __name__ == "__main__":
    main()
