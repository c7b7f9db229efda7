"""The fast model as driver tests use it: beside ``FakeSoc``, whose members that tests look at it has, too."""

import random

from hw.contract.bus import HostCosts
from hw.contract.params import SocParams
from hw.contract.regs import ENGINE_BASE
from sim.functional.units import Units
from sim.model.bus import ModelBus

_RESET = 2
_STEP = (1, 60)  #: cycles in which about one instruction of a test's job ends


class ModelSoc(ModelBus):
    """``resets``: engines that were reset, in order. ``machine``: its memories."""

    def __init__(self, params: SocParams, *, costs: HostCosts | None = None, seed: int = 0) -> None:
        super().__init__(params, costs=costs)
        self.resets: list[int] = []
        self._random = random.Random(seed)

    @property
    def machine(self) -> Units:
        units = self._soc.shared.units
        assert units is not None
        return units

    def write_reg(self, address: int, value: int) -> None:
        engine, offset = divmod(address - ENGINE_BASE, 1 << 12)
        if engine >= 0 and not offset and value & _RESET:
            self.resets.append(engine)
        super().write_reg(address, value)

    def step(self) -> None:
        """Let a little happen."""
        self.advance(self._random.randint(*_STEP))
