"""Models one engine, ``hw/engine.py`` and ``hw/control/engine_control.py``, and all that is behind the bus:
``hw/soc.py`` with its memory."""

from hw.contract.params import SocParams
from hw.contract.regs import EngineState
from hw.contract.timing import RESET_PATIENCE, SETTLED
from sim.model.executor import ExecutorModel
from sim.model.loader import LoaderModel
from sim.model.retirer import RetirerModel
from sim.model.ring import RingModel
from sim.model.shared import Shared
from sim.model.surroundings import LOOK, Surroundings


class EngineModel(Surroundings):
    """Joins ring, loader, executor, retirer and units, and does what the host asks for."""

    def __init__(self, shared: Shared, number: int) -> None:
        super().__init__(shared, number)
        self._reset_at = 0  # when the reset at hand began
        self.ring = RingModel(self)
        self.retirer = RetirerModel(self)
        self.loader = LoaderModel(self)
        self.executor = ExecutorModel(self)
        shared.event_changed.append(self.executor.preparer.event_changed)

    def control(self, time: int, value: int) -> None:
        """Write CONTROL, which takes effect in cycle ``time``."""
        enabled, paused = bool(value & 1), bool(value & 4)
        was_paused = self.paused
        self.enabled, self.paused = enabled, paused
        if value & 2:
            self._reset(time)
            return
        if paused and not was_paused:
            self.loader.pause(time)
            self.executor.pause(time)
        elif was_paused and not paused:
            self.loader.resume(time)
            self.executor.resume(time)
        if enabled:
            self.ring.consider(time)
            self.loader.consider(time)
            self.executor.preparer.prepare(time)
            self.executor.consider(time)

    def state(self, time: int) -> EngineState:
        """Return STATUS.state."""
        if self.resetting:
            return EngineState.HUNG if time - self._reset_at >= RESET_PATIENCE else EngineState.RESETTING
        return self.executor.state(time)

    def quiet(self) -> bool:
        """Return whether no transaction is outstanding."""
        parts = self.executor.dispatch.fetch.outstanding + self.loader.fetch.outstanding + self.retirer.writing
        return not (parts + self.ld2.outstanding + self.st2.outstanding + self.ring.fetching)

    def _reset(self, time: int) -> None:
        if self.resetting:
            return
        self.resetting = self.stopped = True
        self._reset_at = time
        self.loader.stop()
        self.executor.generation += 1
        self.executor.preparer.generation += 1
        self.executor.dispatch.fetch.stop()
        self.ld2.stop()
        self.st2.stop()
        self.agenda.at(time + 1, self._await_quiet)

    def _await_quiet(self, time: int, _: None) -> None:
        if not self.quiet():
            self.agenda.at(time + LOOK, self._await_quiet)
        else:
            self.agenda.at(time + SETTLED + 1, self._cleared)

    def _cleared(self, time: int, _: None) -> None:
        self.resetting = self.stopped = False
        self.enabled = self.paused = False
        self.irq_pending = 0
        self.regs["CPL_HEAD"] = 0
        self.ld2.clear()
        self.st2.clear()
        for component in (self.ring, self.retirer, self.loader, self.executor):
            component.reset()


class SocModel:
    """Joins the engines and what they ``shared``."""

    def __init__(self, params: SocParams, *, data: bool = True) -> None:
        self.shared = Shared(params, data=data)
        self.engines = [EngineModel(self.shared, number) for number in range(params.engines)]

    def line(self) -> bool:
        """Return the interrupt line."""
        return any(engine.irq_pending & engine.regs["IRQ_ENABLE"] for engine in self.engines)
