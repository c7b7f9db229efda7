"""What a person meets in the first hour, and in the hundredth: rows of ``caesura bench everyday``.

Shares are those of tests that do as a reader or a user does: blocks of the documentation, a wheel far from a checkout,
scripts of onnxruntime. The time from a clone to a first result is none of the rows, as most of it is a network's.
"""

import importlib.util
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.figures import Figure, Measured, NotAvailableError, Target
from benchmarks.lab import Lab
from benchmarks.ledger.startup.sitecustomize import COPY, ROOTS
from benchmarks.workloads import workload
from sim.toolchain import BuildError

ROOT = Path(__file__).parents[1]
#: Tests by row; they are not part of the package, so a checkout is needed.
DOCS = (
    "tests/system/test_documented_commands.py", "tests/system/test_documented_output.py",
    "tests/system/test_tutorial.py", "tests/examples/test_driving.py", "tests/examples/test_words_demo.py",
)  # fmt: skip
WHEEL = ("tests/release/test_wheel.py",)
PORTED = (
    "tests/caesura/test_inference_session.py", "tests/examples/test_notebook.py", "tests/caesura/commands/test_diff.py",
)  # fmt: skip

_DIFFERENCE = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")


def figures() -> list[Figure]:
    """Return the rows."""
    whole = Target(100, 100)
    return [
        Figure("demo_silence", Target(5, 2, "s", at_most=True), _silence),
        Figure("docs_blocks", whole, partial(_share, tests=DOCS)),
        Figure("wheel", whole, partial(_share, tests=WHEEL)),
        Figure("ported_scripts", whole, partial(_share, tests=PORTED)),
        Figure("whatif_register", Target(75, 45, "s", at_most=True), _whatif),
    ]


def _silence(lab: Lab) -> Measured:
    """Return the longest time in which what ``make demo`` starts tells a terminal nothing, with an empty cache; what
    comes before that is pip's."""
    with tempfile.TemporaryDirectory(prefix="caesura-") as cache:
        code, told = spoken([sys.executable, "-m", "examples.digits.demo"], cache)
    gaps = [after - before for before, after in pairwise(told)]
    return Measured(max(gaps), code == 0, {"seconds": round(told[-1] - told[0], 1), "counted": "without pip"})


def spoken(command: Sequence[str], cache: str) -> tuple[int, list[float]]:
    """Return the exit code of a command on a terminal of its own, and when it began, told something, and ended.
    ``cache``: the folder in which it keeps what can be made again."""
    mine, theirs = pty.openpty()
    told = [time.monotonic()]
    env = {**os.environ, "XDG_CACHE_HOME": cache, "TERM": "xterm"}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    try:
        while True:
            ready, _, _ = select.select([mine], [], [], 1.0)
            if ready and not _read(mine):
                break
            if ready:
                told.append(time.monotonic())
        code = process.wait()
        return code, [*told, time.monotonic()]
    finally:
        process.kill()
        os.close(mine)


def _read(terminal: int) -> bytes:
    """Return what was told; nothing at the end, which Linux calls an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def _share(lab: Lab, tests: Sequence[str]) -> Measured:
    """Return how many percent of ``tests``, slow ones included, pass."""
    if not all((ROOT / one).is_file() for one in tests):
        raise NotAvailableError("the tests are not installed: this row needs a checkout")
    if importlib.util.find_spec("pytest") is None:
        raise NotAvailableError("pytest is not installed: make setup, or pip install 'caesura-npu[dev]'")
    lab.progress.task(", ".join(tests))
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not report.is_file():
            raise BuildError(f"pytest did not run: {(done.stderr or done.stdout).strip()[-300:]}")
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    wrong = [one for one in cases if one.find("failure") is not None or one.find("error") is not None]
    skipped = sum(one.find("skipped") is not None for one in cases)
    ran = len(cases) - skipped
    names = [f"{one.get('classname')}::{one.get('name')}" for one in wrong]
    detail: dict[str, object] = {"tests": ran, "skipped": skipped, "failed": names}
    if wrong:
        detail["explanation"] = f"{len(wrong)} of {ran} failed, the first: {names[0]}"
    return Measured(100 * (ran - len(wrong)) / ran, not wrong, detail)


def _whatif(lab: Lab) -> Measured:
    """Return the seconds in which ``caesura whatif`` tells what the register of docs/tutorial.md costs MobileNetV2 on
    ``base``. The RTL of the last commit was built before, that with the register was not."""
    (difference,) = _DIFFERENCE.findall((ROOT / "docs" / "tutorial.md").read_text())
    model = workload("mobilenetv2")
    with tempfile.TemporaryDirectory(prefix="caesura-") as cache, checkout() as folder:
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {**os.environ, **_as_ours(folder), "PYTHONPATH": path, "XDG_CACHE_HOME": cache}
        caesura = [sys.executable, "-P", "-m", "caesura"]
        options = ["--preset", "base"]
        lab.progress.task("building base")
        _ran([*caesura, "run", str(model), *options, "--backend", "native", "--json"], folder, env)
        _ran([*_GIT, "apply", "-"], folder, env, difference)
        lab.progress.task("caesura whatif mobilenetv2 --preset base")
        start = time.monotonic()
        told = _ran([*caesura, "whatif", str(model), *options], folder, env)
        took = time.monotonic() - start
    changed = re.search(r"^│ cycles .*$", told, re.MULTILINE)
    return Measured(took, "outputs: equal" in told, {"told": changed[0] if changed else told[-300:]})


def _as_ours(folder: Path) -> dict[str, str]:
    """Return the variable for which whoever watches this process takes files of a copy for those of the project."""
    roots = os.environ.get(ROOTS)
    return {ROOTS: os.pathsep.join([roots, f"{folder}{COPY}{ROOT}"])} if roots else {}


@contextmanager
def checkout() -> Iterator[Path]:
    """Yield a folder with the present sources, as a repository whose last commit they are. Raises
    :class:`NotAvailableError` where these are no checkout, :class:`sim.toolchain.BuildError` where git fails."""
    if not (ROOT / ".git").exists():
        raise NotAvailableError("no checkout of Caesura, whose sources could be compared")
    with tempfile.TemporaryDirectory(prefix="caesura-") as made:
        folder, env = Path(made), dict(os.environ)
        ours = [*_GIT, f"--git-dir={folder / '.git'}", f"--work-tree={ROOT}"]
        _ran([*_GIT, "init", "--quiet"], folder, env)
        _ran([*ours, "add", "--all"], ROOT, env)
        _ran([*ours, "commit", "--quiet", "--message", "start"], ROOT, env)
        _ran([*_GIT, "reset", "--quiet", "--hard"], folder, env)
        yield folder


def _ran(command: Sequence[str], folder: Path, env: dict[str, str], given: str | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=env, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{' '.join(command[:5])} failed: {done.stderr.strip()[-500:]}")
    return done.stdout
