"""What the campaigns attack: by default this checkout; for a mutant, hardware or software of a changed copy of it.

A mutant must not move its own judge. So where the hardware is changed, campaigns and oracles are those of the clean
checkout, and only the simulator is built from the copy. Where software is changed, campaigns run in the copy, but on
bytes (images, expected results) that the clean checkout made before.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from hw.contract.bus import Bus, HostCosts
from hw.contract.params import SocParams
from sim import DEFAULT_BACKEND, open_simulator

HARDWARE = "CAESURA_TRUST_HARDWARE"  #: checkout from which simulators of the RTL are built
KEEP = "CAESURA_TRUST_KEEP"  #: folder into which :func:`kept` writes
KEPT = "CAESURA_TRUST_KEPT"  #: folder from which it reads, and must find


class DisturbedBus(Bus, Protocol):
    """The bus of a simulator whose memory can go wrong on purpose: the RTL's and the fast model's."""

    def set_dram_fault(self, kind: int, base: int = 0, size: int = 1 << 32, *, after: int = 0, cycles: int = 1) -> None:
        """See ``sim.rtl.RtlBus``."""

    def set_stalls(self, seed: int, per_256: int) -> None:
        """Likewise."""


def open_device(params: SocParams, backend: str, costs: HostCosts | None = None) -> DisturbedBus:
    """A simulated device at power-on, for a campaign: as ``open_simulator``, of the hardware that is under test."""
    tree = os.environ.get(HARDWARE)
    if tree is None or backend != DEFAULT_BACKEND:
        return cast(DisturbedBus, open_simulator(params, backend, costs=costs))
    from sim.rtl import CompiledBus

    return CompiledBus(params, _library(Path(tree), params), backend="native", costs=costs)


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """What ``make`` gives: input or expected output of a campaign, which a mutant takes from the clean checkout.
    ``name`` stands for exactly these bytes, in all campaigns."""
    file = hashlib.sha256(name.encode()).hexdigest()[:32]
    if KEPT in os.environ:
        return (Path(os.environ[KEPT]) / file).read_bytes()
    made = make()
    if KEEP in os.environ:
        draft = Path(os.environ[KEEP]) / f"{file}.{os.getpid()}"
        draft.write_bytes(made)
        draft.replace(draft.with_name(file))
    return made


def _library(tree: Path, params: SocParams) -> Path:
    """The compiled simulator of the RTL in ``tree``; builds it if it is not in the cache."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.trust.under_test", json.dumps(params.to_dict())],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the hardware of {tree} cannot be built:\n{done.stderr[-2000:]}")
    return Path(done.stdout.splitlines()[-1])


def main() -> None:
    """Build the simulator of this checkout's RTL and print its path."""
    from hw import Soc
    from sim.rtl import SimTop, design_digest, recipe
    from sim.toolchain import library

    params = SocParams.from_dict(json.loads(sys.argv[1]))
    print(library(recipe(lambda: SimTop(params, Soc(params)), params), source=design_digest(params)))


if __name__ == "__main__":
    main()
