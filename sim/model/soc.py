"""Models all that is behind the bus: ``hw/soc.py`` with its memory."""

from hw.contract.params import SocParams
from sim.model.engine import EngineModel
from sim.model.shared import Shared


class SocModel:
    """Joins the engines and what they ``shared``."""

    def __init__(self, params: SocParams, *, data: bool = True) -> None:
        self.shared = Shared(params, data=data)
        self.engines = [EngineModel(self.shared, number) for number in range(params.engines)]

    def line(self) -> bool:
        """Return the interrupt line."""
        return any(engine.irq_pending & engine.regs["IRQ_ENABLE"] for engine in self.engines)
