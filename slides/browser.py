"""What does a page do in a real browser? A headless Chromium, driven over a pipe.

It reaches nothing but this machine.
"""

import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path

from course import doctor

# no name resolves: what a page asks of another machine fails, and is seen in `requests`
OFFLINE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
FLAGS = """--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-extensions --hide-scrollbars
--disable-dev-shm-usage --remote-debugging-pipe""".split()
SECONDS = 60  # for one answer
KEYS = dict(Tab=9, Enter=13, End=35, Home=36)  # as Windows numbers them
KEYS |= dict(ArrowLeft=37, ArrowUp=38, ArrowRight=39, ArrowDown=40)
COMPLAINTS = ("error", "assert", "warning")  # of the console
LOCAL = ("file:", "data:", "blob:", "about:")  # addresses on this machine


class Browser:
    """`with Browser() as browser: page = browser.page()`; one process, closed with the block."""

    def __init__(self, seconds=SECONDS):
        self.seconds = seconds

    def __enter__(self):
        binary = doctor.browser()
        if not binary:
            raise FileNotFoundError(
                "wanted a Chromium, found none: install one, or name it in CHROME "
                "(make doctor says more)"
            )
        self.home = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)

        # two pipes: Chromium reads from 3 and writes to 4
        asked, self.asks = os.pipe()
        self.answers, answer = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (asked, answer)]
        rules = [f"--host-resolver-rules={OFFLINE}", f"--user-data-dir={self.home.name}"]
        self.process = subprocess.Popen(
            [binary, *FLAGS, *rules],
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
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            answer = self.hear(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
        raise TimeoutError(f"{method}: no answer in {self.seconds} s")

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
        screen = dict(width=width, height=height, deviceScaleFactor=1, mobile=phone)
        page.call("Emulation.setDeviceMetricsOverride", **screen)
        scheme = dict(name="prefers-color-scheme", value="dark" if dark else "light")
        page.call("Emulation.setEmulatedMedia", features=[scheme])
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
        elif event == "Runtime.consoleAPICalled" and about["type"] in COMPLAINTS:
            said = (part.get("value", part.get("description")) for part in about["args"])
            self.errors.append(" ".join(map(str, said)))
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(f"{about['entry']['text']} {about['entry'].get('url', '')}".strip())
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Page.loadEventFired":
            self.loads += 1

    def strangers(self):
        """Requests that would have left this machine."""
        return sorted({url for url in self.requests if not url.startswith(LOCAL)})

    def run(self, script):
        """The value of a JavaScript expression, awaited."""
        how = dict(returnByValue=True, awaitPromise=True)
        done = self.call("Runtime.evaluate", expression=script, **how)
        if "exceptionDetails" in done:
            error = done["exceptionDetails"].get("exception", {})
            raise RuntimeError(error.get("description", "JavaScript failed"))
        return done["result"].get("value")

    def wait(self, fact, what="the page", seconds=None):
        seconds = seconds or self.browser.seconds
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if fact():
                return
            self.browser.hear(time.monotonic() + 0.02)
        raise TimeoutError(f"{what} did not get ready in {seconds} s; it said: {self.errors[:3]}")

    def open(self, where, query=""):
        """Open a file or an address; wait until its scripts say ready, by the mark data-ready."""
        url = where if "://" in str(where) else Path(where).resolve().as_uri()
        before = self.loads
        self.call("Page.navigate", url=url + query)
        self.settle(before)

    def settle(self, before):
        self.wait(lambda: self.loads > before)
        ready = lambda: self.run("document.documentElement.dataset.ready === 'yes'")
        self.wait(ready, self.run("location.href"))

    def click(self, selector):
        """Press the mouse on the first such element, and wait for the page that it leads to."""
        before = self.loads
        self.touch(selector)
        self.settle(before)

    def touch(self, selector):
        """Press the mouse on the first such element, whatever comes of it."""
        at = self.run(f"""(() => {{
            const e = document.querySelector({json.dumps(selector)});
            if (!e) return null;
            e.scrollIntoView({{block: "center", behavior: "instant"}});
            const r = e.getClientRects()[0];
            return [r.x + r.width / 2, r.y + r.height / 2];
        }})()""")
        if at is None:
            raise LookupError(f"{self.run('location.href')} has no {selector}")
        click = dict(x=at[0], y=at[1], button="left", clickCount=1)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **click)

    def press(self, key, code=None, shift=False):
        number = KEYS.get(key, 0)
        text = "\r" if key == "Enter" else ""
        stroke = dict(key=key, code=code or key, windowsVirtualKeyCode=number, text=text)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, modifiers=8 * shift, **stroke)

    def type(self, text):
        """What a person writes or pastes where the cursor stands."""
        self.call("Input.insertText", text=text)

    def shot(self, path, whole=False):
        """A picture of the window, or of the whole page."""
        clip = dict(clip=self.whole()) if whole else {}
        done = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **clip)
        Path(path).write_bytes(base64.b64decode(done["data"]))

    def tiles(self, start, height):
        """The whole page as pictures of at most this height, start-1.png and on; their paths."""
        size, paths = self.call("Page.getLayoutMetrics")["cssContentSize"], []
        while len(paths) * height < size["height"]:
            top = len(paths) * height
            part = dict(x=0, y=top, width=size["width"], height=min(height, size["height"] - top))
            clip = dict(part, scale=1)
            done = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
            paths.append(Path(f"{start}-{len(paths) + 1}.png"))
            paths[-1].write_bytes(base64.b64decode(done["data"]))
        return paths

    def whole(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return dict(x=0, y=0, width=size["width"], height=min(size["height"], 16000), scale=1)

    def pdf(self, path, **how):
        how = dict(preferCSSPageSize=True, printBackground=True) | how
        done = self.call("Page.printToPDF", **how)
        Path(path).write_bytes(base64.b64decode(done["data"]))
