"""A Chromium without a window, driven through chromedriver, to judge pages by: what it draws at a width, light or dark.

Speaks the WebDriver protocol (W3C) itself, which takes one function; a client of it would bring 35 MB.
"""

import base64
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
#: Why pages cannot be judged here; empty if they can.
MISSING = "" if CHROMIUM and DRIVER else "needs Chromium and chromedriver (Debian: chromium, chromium-driver)"

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--allow-file-access-from-files",
)  # fmt: skip
_READY = "successfully on port "  #: what chromedriver says once it listens, before the number of its port
_SECONDS = 60  #: that a command may take


class Browser:
    """One window. Commands raise ``urllib.error.HTTPError`` where the browser refuses them."""

    def __init__(self, address: str, profile: Path) -> None:
        options = {"binary": CHROMIUM, "args": [*_FLAGS, f"--user-data-dir={profile}"]}
        asked = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        found = _send(f"{address}/session", asked)
        self._session = f"{address}/session/{found['sessionId']}"

    def before_pages(self, script: str) -> Self:
        """Run JavaScript in each page to come, before anything of its own."""
        self.tell("Page.addScriptToEvaluateOnNewDocument", source=script)
        return self

    def look(self, width: int, height: int = 1200, scheme: str = "light", media: str = "screen") -> None:
        """Set the width of what is looked at, in CSS pixels, the colours of the reader's system, and what is drawn
        on."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.tell("Emulation.setEmulatedMedia", media=media, features=features)

    def open(self, path: Path) -> None:
        """Load a file and wait until it has loaded."""
        _send(f"{self._session}/url", {"url": path.resolve().as_uri()})

    def run(self, script: str) -> Any:
        """Run the body of a JavaScript function, and wait for the promise it returns; return what comes of it."""
        return _send(f"{self._session}/execute/sync", {"script": script, "args": []})

    def shot(self, path: Path, whole: bool = True) -> None:
        """Write a PNG of the page."""
        found = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def tell(self, command: str, **values: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return _send(f"{self._session}/goog/cdp/execute", {"cmd": command, "params": values})

    def close(self) -> None:
        """End the browser."""
        _send(self._session, None, "DELETE")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty ``profile``, and end it."""
    assert DRIVER is not None, MISSING
    with subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout is not None
            port = next(line for line in driver.stdout if _READY in line).split(_READY)[1].strip(" .\n")
            one = Browser(f"http://127.0.0.1:{port}", profile)
            try:
                yield one
            finally:
                one.close()
        finally:
            driver.terminate()


def _send(address: str, body: dict[str, Any] | None, method: str = "POST") -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        return json.load(answer)["value"]
