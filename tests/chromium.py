"""A headless Chromium on a pipe: enough of its protocol to load a page, press keys, click, and evaluate expressions."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_LAUNCH = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)  # where the browser reads
os.dup2(int(sys.argv[2]), 4)  # where it writes
os.execv(sys.argv[3], sys.argv[3:])
"""
_KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "ArrowDown": (40, ""), "ArrowUp": (38, "")}


def find_chromium() -> str | None:
    """Return the browser, if this machine has one."""
    return next((path for path in map(shutil.which, _NAMES) if path), None)


def _high(descriptor: int) -> int:
    """Move a descriptor out of the way of 3 and 4, which the browser uses."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


class Chromium:
    """One browser with one page."""

    def __init__(self, program: str, width: int = 1600, height: int = 1000) -> None:
        self._profile = tempfile.mkdtemp(prefix="noetlc-chromium-")
        to_read, self._out = map(_high, os.pipe())
        self._in, to_write = map(_high, os.pipe())
        launch = (sys.executable, "-c", _LAUNCH, str(to_read), str(to_write))
        self._process = subprocess.Popen(
            [*launch, program, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        os.write(self._out, b'{"id": 0, "method": "Browser.close"}\0')
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") != self._number:
                self.events.append(answer)
                continue
            assert "error" not in answer, answer
            result: dict[str, Any] = answer["result"]
            return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the browser is gone"
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    # ---- what tests do

    def load(self, page: Path) -> None:
        """Open a page and wait until its script has unpacked everything."""
        self.send("Page.navigate", url=page.as_uri())
        ready = "document.documentElement?.dataset.ready"
        wait = f"new Promise(done => {{ const ask = () => {ready} ? done({ready}) : setTimeout(ask, 10); ask(); }})"
        while self.evaluate("location.href") != page.as_uri():
            pass
        assert self.evaluate(wait) == "yes"

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        where = self.evaluate(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)});"
            " element.scrollIntoView({ block: 'nearest' }); const box = element.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, *where)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        pressed = {"button": "left", "clickCount": 1} if kind != "mouseWheel" else {}
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed, **more)

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        code, text = _KEYS.get(key, (0, key))
        named = {"key": key, "windowsVirtualKeyCode": code, "code": key} if code else {"key": key}
        typed = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **named, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", **named)

    def prefer(self, scheme: str) -> None:
        """Be a viewer who likes it `light` or `dark`."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def complaints(self) -> list[Any]:
        """Return what the page logged, threw, or requested from the network."""
        noisy = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        requests = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        requested = [one["request"]["url"] for one in requests if not one["request"]["url"].startswith("file:")]
        return [event for event in self.events if event.get("method") in noisy] + requested
