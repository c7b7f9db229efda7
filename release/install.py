"""Installs with pip and tells how far it is: ``python release/install.py ARGUMENTS`` does ``pip install ARGUMENTS``.

pip says nothing while it unpacks, which is most of its time. Needs nothing that is not part of Python, as nothing else
is there yet.
"""

import re
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

EVERY = 2.0  #: seconds between two lines

_STEPS = (
    (re.compile(r"^Collecting ([\w.-]+)"), "finding {}"),
    (re.compile(r"^\s+Downloading (?:\S*/)?([\w.]+)-\d"), "downloading {}"),
    (re.compile(r"^Installing collected packages: (.*)"), "unpacking"),
)  # fmt: skip


class Watched:
    """One run of pip. ``tell`` gets a line whenever ``every`` seconds (monotonic time) have passed."""

    def __init__(self, packages: Path, tell: Callable[[str], None], every: float = EVERY) -> None:
        self.output: list[str] = []
        self._packages, self._tell, self._every = packages, tell, every
        self._step, self._wanted = "starting", 0

    def run(self, command: Sequence[str]) -> int:
        """Run ``command`` to its end; returns its exit code. What it printed is in ``output``."""
        before, start = self._there(), time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            reader = threading.Thread(target=self._read, args=(process,))
            reader.start()
            while reader.is_alive():
                reader.join(self._every)
                if reader.is_alive():
                    self._tell(self._line(self._there() - before, time.monotonic() - start))
            return process.wait()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.output.append(line)
            for pattern, step in _STEPS:
                found = pattern.match(line)
                if found:
                    self._step = step.format(found[1])
                    self._wanted = len(found[1].split(",")) if step == "unpacking" else self._wanted

    def _line(self, done: int, seconds: float) -> str:
        of = f" ({done} of {self._wanted})" if self._wanted else ""
        return f"    {seconds:3.0f} s: {self._step}{of}"

    def _there(self) -> int:
        """Return how many distributions are installed."""
        return sum(1 for _ in self._packages.glob("*.dist-info"))


def main() -> int:
    """Install what the command line names; returns pip's exit code. Where pip fails, all that it said is told."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
    watched = Watched(Path(sysconfig.get_path("purelib")), lambda line: print(line, flush=True))
    code = watched.run([*command, *sys.argv[1:]])
    if code:
        sys.stderr.writelines(watched.output)
    return code


if __name__ == "__main__":
    sys.exit(main())
