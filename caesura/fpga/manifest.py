"""Says what a result was made of: commit, parameters, part, tools, seeds."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caesura.fpga import tools
from caesura.fpga.board_setup import BoardSetup
from caesura.fpga.flow import Flow
from caesura.fpga.netlist import Netlist
from caesura.version import __version__
from hw.contract.params import SocParams


def manifest(
    netlist: Netlist, params: SocParams, flow: Flow, seeds: Sequence[int], block: str | None,
    setup: BoardSetup | None,
) -> dict[str, Any]:  # fmt: skip
    """Return all that it takes to make a result of ``flow`` again, with the ``setup`` of a board to use."""
    return {
        "version": __version__,
        "commit": _commit(),
        "parameters": params.to_dict(),
        "block": block,
        "baud": setup and setup.baud,
        "memory": setup and setup.memory,
        "clock_mhz": setup and setup.clock,
        "netlist": netlist.digest,
        "device": flow.part.device,
        "package": flow.part.package,
        "speed": flow.part.speed,
        "target_mhz": flow.target,
        "seeds": list(seeds),
        "placer": flow.placer,
        "router": flow.router,
        "spacing": flow.spacing,
        "logic_ps": flow.logic,
        "rip_up": flow.rip_up,
        "anneal": flow.anneal,
        "tools": {need: tools.version(need) for need in ("synthesis", "place and route")},
    }


def _commit() -> str | None:
    """Return the commit of the checkout, with a ``+`` if files differ from it; None outside of one."""
    root = Path(__file__).parents[2]
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *command: str) -> str:
    return subprocess.run(["git", "-C", root, *command], capture_output=True, text=True, check=True).stdout.strip()
