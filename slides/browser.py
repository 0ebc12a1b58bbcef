"""What does a page do in a real browser? A headless Chromium, driven over a pipe, that reaches nothing but this machine."""

import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path

from minimal.lab import doctor

OFFLINE = "MAP * ~NOTFOUND"  # no name resolves: whatever a page asks of another machine fails, and is seen in `requests`
FLAGS = """--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update
--disable-sync --disable-extensions --hide-scrollbars --disable-dev-shm-usage --remote-debugging-pipe""".split()
SECONDS = 60  # for one answer


class Browser:
    """`with Browser() as browser: page = browser.page()`; one process, closed with the block."""

    def __enter__(self):
        binary = doctor.browser()
        if not binary:
            raise FileNotFoundError(
                "wanted a Chromium; found none: install one, or name it in CHROME (make doctor says more)"
            )
        self.home = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        (asked, self.asks), (self.answers, answer) = os.pipe(), os.pipe()
        ends = [
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (asked, answer)
        ]  # Chromium reads 3 and writes 4
        self.process = subprocess.Popen(
            [
                binary,
                *FLAGS,
                f"--host-resolver-rules={OFFLINE}",
                f"--user-data-dir={self.home.name}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=lambda: [os.dup2(end, to) for to, end in enumerate(ends, 3)],
        )
        for end in (asked, answer, *ends):
            os.close(end)
        self.number, self.rest, self.pages = 0, b"", {}
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.asks)
        os.close(self.answers)
        self.home.cleanup()

    def call(self, method, session=None, **parameters):
        """Ask one thing and wait for its answer; what pages report meanwhile goes to the pages."""
        self.number += 1
        number, message = self.number, dict(id=self.number, method=method, params=parameters)
        if session:
            message["sessionId"] = session
        os.write(self.asks, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            answer = self.hear(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
        raise TimeoutError(f"{method}: no answer in {SECONDS} s")

    def hear(self, end):
        """The next message; events are handed to their page at once."""
        while b"\0" not in self.rest:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                return {}
            read = os.read(self.answers, 1 << 20)
            if not read:
                raise EOFError("Chromium ended by itself")
            self.rest += read
        one, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(one)
        if message.get("sessionId") in self.pages and "method" in message:
            self.pages[message["sessionId"]].note(message["method"], message["params"])
        return message

    def page(self, width=1280, height=720, dark=False, phone=False):
        """A new tab of this size; light or dark as the reader's system would ask for."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        page.call(
            "Emulation.setEmulatedMedia",
            features=[dict(name="prefers-color-scheme", value="dark" if dark else "light")],
        )
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.errors, self.requests, self.loads = [], [], 0

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def note(self, event, about):
        if event == "Runtime.exceptionThrown":
            told = about["exceptionDetails"]
            self.errors.append(told.get("exception", {}).get("description", told["text"]))
        elif event == "Runtime.consoleAPICalled" and about["type"] in (
            "error",
            "assert",
            "warning",
        ):
            self.errors.append(
                " ".join(str(part.get("value", part.get("description"))) for part in about["args"])
            )
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(f"{about['entry']['text']} {about['entry'].get('url', '')}".strip())
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Page.loadEventFired":
            self.loads += 1

    def strangers(self):
        """Requests that would have left this machine."""
        return sorted(
            {
                url
                for url in self.requests
                if not url.startswith(("file:", "data:", "blob:", "about:"))
            }
        )

    def run(self, script):
        """The value of a JavaScript expression, awaited."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in done:
            raise RuntimeError(
                done["exceptionDetails"]
                .get("exception", {})
                .get("description", "JavaScript failed")
            )
        return done["result"].get("value")

    def wait(self, fact, what="the page"):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if fact():
                return
            self.browser.hear(time.monotonic() + 0.02)
        raise TimeoutError(f"{what} did not get ready in {SECONDS} s; it said: {self.errors[:3]}")

    def open(self, where, query=""):
        """Open a file or an address and wait until its own scripts say ready (pages of this course set data-ready)."""
        url = where if "://" in str(where) else Path(where).resolve().as_uri()
        before = self.loads
        self.call("Page.navigate", url=url + query)
        self.settle(before)

    def settle(self, before):
        self.wait(lambda: self.loads > before)
        self.wait(
            lambda: self.run("document.documentElement.dataset.ready === 'yes'"),
            self.run("location.href"),
        )

    def click(self, selector):
        """Press the mouse where the first such element is seen, and wait for the page that it leads to."""
        at = self.run(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;
            e.scrollIntoView({{block: "center", behavior: "instant"}}); const r = e.getClientRects()[0];
            return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        if at is None:
            raise LookupError(f"{self.run('location.href')} has no {selector}")
        before = self.loads
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1
            )
        self.settle(before)

    def press(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=code or key,
                windowsVirtualKeyCode={"Tab": 9, "Enter": 13, "ArrowRight": 39}.get(key, 0),
                text="\r" if key == "Enter" else "",
            )

    def shot(self, path, whole=False):
        """A picture of the window, or of the whole page."""
        done = self.call(
            "Page.captureScreenshot",
            captureBeyondViewport=whole,
            **(dict(clip=self.whole()) if whole else {}),
        )
        Path(path).write_bytes(base64.b64decode(done["data"]))

    def whole(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return dict(x=0, y=0, width=size["width"], height=min(size["height"], 16000), scale=1)

    def pdf(self, path):
        done = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        Path(path).write_bytes(base64.b64decode(done["data"]))
