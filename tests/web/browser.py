"""A real Chromium without a window, driven over pipes by its DevTools protocol. The class collects the problems of its pages (messages to
the console, exceptions, violations of the content security policy) and the addresses of all requests."""

import base64
import fcntl
import itertools
import json
import os
import pathlib
import select
import shutil
import sys
import time

from harness import PATIENCE, expect, fail, until

# A program that runs Chromium, which reads its commands from descriptor 3 and writes its answers to descriptor 4.
LAUNCH = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
QUIET = ("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check", "--mute-audio",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1")
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


def program():
    """Returns the path of Chromium, or None if it is not installed."""
    return shutil.which("chromium")


class Navigated(AssertionError):
    """Raised if the browser left a page while an expression was evaluated in it."""


class Browser:
    """`trusted`: the digest of a public key; certificates with this key are accepted (certificate_key)."""

    def __init__(self, scratch, trusted=None):
        flags = [*QUIET, f"--user-data-dir={scratch.path('chromium')}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # as root, Chromium starts only without its sandbox
        if trusted:
            flags.append(f"--ignore-certificate-errors-spki-list={trusted}")
        theirs_in, self.out = pipe()
        self.into, theirs_out = pipe()
        self.child = scratch.start(sys.executable, "-c", LAUNCH, theirs_in, theirs_out, program(), *flags, name="chromium", pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self.numbers, self.read, self.events = itertools.count(1), b"", []
        self.problems = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(1280, 900)

    def close(self):
        self.child.kill()
        for descriptor in (self.into, self.out):
            os.close(descriptor)

    # --- the protocol

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60 * PATIENCE
        while True:
            answer = self._next(end, method)
            if answer.get("id") == number:
                if any(word in str(answer.get("error")) for word in ("navigated", "context was destroyed")):
                    raise Navigated(f"{method}: {answer['error']}")
                expect("error" not in answer, f"{method}: {answer.get('error')}")
                return answer["result"]

    def _next(self, end, what):
        while b"\0" not in self.read:
            ready, _, _ = select.select([self.into], [], [], max(0, end - time.monotonic()))
            expect(ready, f"Chromium did not answer {what}")
            more = os.read(self.into, 1 << 20)
            expect(more, "Chromium has ended")
            self.read += more
        message, self.read = self.read.split(b"\0", 1)
        message = json.loads(message)
        if "method" in message:
            self._event(message["method"], message["params"])
        return message

    def _event(self, method, about):
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(about["exceptionDetails"].get("exception", about["exceptionDetails"]).get("description", about)))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(one.get("value", one.get("description"))) for one in about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.events.append(about["request"]["url"])

    # --- pages

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'", f"{url} is loaded")

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            fail(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression, what, deadline=60):
        """Waits until an expression is true, and returns the expression's value. Meanwhile the page may be loading, or be replaced by
        another page."""
        tried = f"(() => {{ try {{ return {expression} }} catch {{ return null }} }})()"
        try:
            return until(lambda: self.js_of_any_page(tried), deadline, what)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.text()}\nproblems: {self.problems}") from late

    def js_of_any_page(self, expression):
        """Returns js(expression), or None if another page replaced the page before it could answer."""
        try:
            return self.js(expression)
        except Navigated:
            return None

    def text(self):
        return self.js("document.body.innerText")

    def path(self):
        return self.js("location.pathname + location.search")

    def focused(self):
        """Returns the text, the address and the id of the element that has the focus."""
        return self.js("[document.activeElement.innerText ?? '', document.activeElement.getAttribute('href') ?? '', document.activeElement.id]")

    def press(self, key):
        about = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        if key == "Enter":
            about["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def tab_to(self, href, most=200):
        """Presses Tab until a link to an address has the focus, at most `most` times."""
        for _ in range(most):
            self.press("Tab")
            if self.focused()[1] == href:
                return
        fail(f"{most} times Tab did not lead to {href}; the focus is on {self.focused()}\n{self.text()}")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def shot(self, name):
        """Returns a picture of the whole page as PNG, and also writes it to the folder that WARPLOOM_SHOTS names, if this is set."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"])
        if folder := os.environ.get("WARPLOOM_SHOTS"):
            pathlib.Path(folder, f"{name}.png").write_bytes(data)
        return data


def pipe():
    """Returns the two ends of a pipe, as descriptors from 20 on, so that they are not 3 or 4."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
    for end in ends:
        os.close(end)
    return high
