"""Shows where the native simulator spends its time, by a slower build that counts and times every evaluation."""

import ctypes
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hw.contract.params import SocParams
from sim.rtl import CompiledBus, SimTop, recipe
from sim.toolchain import library


@dataclass(frozen=True)
class ModuleTime:
    """Says that ``bundles`` of logic of a module were evaluated ``evaluations`` times in all, for ``share`` of all
    ticks."""

    module: str
    bundles: int
    evaluations: int
    share: float


class ProfilingBus(CompiledBus):
    """Is a :class:`sim.rtl.CompiledBus` over the native simulator that counts evaluations, and is slower."""

    def __init__(self, params: SocParams, make: Callable[[], SimTop], *, source: str | None = None) -> None:
        super().__init__(params, library(recipe(make, params, profile=True), source=source), backend="native")

    def profile(self) -> list[ModuleTime]:
        """Return modules by falling share of time; time stamps cost some twenty ticks an evaluation themselves."""
        names = ctypes.CDLL(self._library._name).caesura_bundle_modules
        names.restype = ctypes.c_char_p
        modules = names().decode().splitlines()
        counts, ticks = np.zeros((2, len(modules)), np.uint64)
        self._library.caesura_profile(ctypes.c_void_p(counts.ctypes.data), ctypes.c_void_p(ticks.ctypes.data))
        bundles: dict[str, list[int]] = defaultdict(list)
        for number, module in enumerate(modules):
            bundles[module].append(number)
        rows = [
            ModuleTime(module, len(own), int(counts[own].sum()), float(ticks[own].sum() / ticks.sum()))
            for module, own in bundles.items()
        ]
        return sorted(rows, key=lambda row: -row.share)
