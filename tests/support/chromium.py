"""Chromium without a window, driven over its DevTools protocol."""

import base64
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from websockets.sync.client import connect

__all__ = ["Chromium"]

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # as root there is none
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
_PATIENCE = 20.0
"""Seconds until what a test waits for must have come."""


class Chromium:
    """One page in a new browser; what it asks of hosts, and what it complains of, is kept.

    Attributes
    ----------
    requests : list of str
        The address of each request.
    complaints : list of str
        Errors and broken content policies.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._numbers = itertools.count(1)
        self._session: str | None = None

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            folder = opened.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
            program = shutil.which("chromium") or shutil.which("chromium-browser")
            assert program, "Chromium must be installed: make test-browser does it on Debian"
            command, quiet = [program, *FLAGS, f"--user-data-dir={folder}"], subprocess.DEVNULL
            process = subprocess.Popen([*command, "about:blank"], stdout=quiet, stderr=quiet)
            opened.enter_context(process)
            opened.callback(process.terminate)
            file = Path(folder, "DevToolsActivePort")
            port, path = until(
                lambda: file.exists() and file.read_text().split()[:2], "Chromium starts"
            )
            socket = connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None)
            self._socket = opened.enter_context(socket)
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.send(f"{domain}.enable")
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def send(self, method: str, **params: Any) -> Any:
        """Give a command and return its result; events that come first are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        self._socket.send(
            json.dumps(message | ({"sessionId": self._session} if self._session else {}))
        )
        while True:
            answer = json.loads(self._socket.recv(_PATIENCE))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._keep(answer)

    def _keep(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.complaints.append(params["entry"]["text"])

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is there."""
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Return what an expression comes to, as plain values."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """Wait until an expression is true, and return it."""
        return until(lambda: self.run(script), script)

    def text(self, selector: str) -> str:
        """Return the text that an element shows."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def size(self, width: int, height: int) -> None:
        """Be a screen of this size."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def prefer(self, scheme: str) -> None:
        """Prefer a light or a dark page."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def press(self, key: str) -> None:
        """Press a key such as Tab or Enter."""
        code = {"Tab": 9, "Enter": 13}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
            )

    def picture(self, path: Path) -> None:
        """Keep a picture of the whole page."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


def until(condition: Callable[[], Any], what: str = "") -> Any:
    """Return what a condition comes to, once it is true."""
    stop = time.monotonic() + _PATIENCE
    while not (found := condition()):
        assert time.monotonic() < stop, f"this did not come true: {what}"
        time.sleep(0.05)
    return found
