"""What scenarios are played on: a device whose bus is logged, models on it, and notes of what has come of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.trust.faulty_bus import FaultyBus
from hw.contract.bus import HostCosts
from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.contract.params import SocParams, preset
from hw.image.image import Image
from sim.dram import DramFault
from sw.driver import Device, DriverError, JobResult, LoadedModel
from sw.runtime import Runtime
from tests.support.bus_log.log import LoggedBus
from tests.support.fake_soc import FakeSoc
from tests.support.model_soc import ModelSoc

TINY, BASE = preset("tiny"), preset("base")
LIMIT = 10_000_000
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
_OF_THE_DRIVER = 0xFFFE  #: model number of the driver's own jobs, or above


@dataclass(frozen=True)
class Stage:
    """Opens devices of one kind of ``soc``, and writes all that happens to them to ``lines``."""

    soc: type[FakeSoc] | type[ModelSoc]
    lines: list[str]

    @property
    def fake(self) -> bool:
        """Whether this is the fake device, which can fail at will."""
        return self.soc is FakeSoc

    def open(
        self, params: SocParams = TINY, *, seed: int = 0, ring_log2: int = 6, costs: HostCosts | None = None
    ) -> "Played":
        """A device at power-on. What its memories hold then is not zero."""
        bus = FaultyBus(self.soc(params, seed=seed, costs=costs))
        machine = bus.bus.machine
        machine.lv2[:] = 0xEE
        for engine in machine.engines:
            engine.lv1[:], engine.acc[:] = 0xDD, 0x0C0C0C0C
        return Played(Device(LoggedBus(bus, self.lines), ring_log2=ring_log2), bus, bus.bus)


@dataclass(frozen=True)
class Played:
    """One device, the faulty bus of it, and its simulator."""

    device: Device
    faulty: FaultyBus
    soc: FakeSoc | ModelSoc

    def note(self, text: str) -> None:
        """Write a line to the log."""
        self.device.bus.note(text)

    def load(self, image: Image, **options) -> LoadedModel:
        """Load a model."""
        return self.device.load(image, **options)

    def start(self, model: LoadedModel, seed: int = 0) -> list[int]:
        """Begin an inference of a model from ``tests.support`` and queue all of its jobs."""
        model.write_tensor("x", np.random.default_rng(seed).integers(-128, 128, (1, 8, 8)).astype(np.int8))
        self.device.begin(model, LIMIT)
        return self.device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)

    def finish(self, model: LoadedModel, ids: Sequence[int]) -> None:
        """Collect jobs, and note what they say and what the model has computed."""
        self.results(self.device.collect(ids, LIMIT))
        model.read_tensor("y")

    def results(self, results: Sequence[JobResult]) -> None:
        """Note results of jobs."""
        for r in results:
            times = (r.prologue_start, r.prologue_end, r.start, r.end)
            self.note(f"result {r.model.name} {r.job} on {r.engine} {times} {r.resumed} {r.traffic.total.bytes}")

    def run(self, model: LoadedModel) -> None:
        """One inference of a model."""
        self.finish(model, self.start(model))

    def refused(self, action: Callable[..., object], *arguments, **options) -> None:
        """Do what may fail, and note how it does."""
        try:
            action(*arguments, **options)
            self.note("done")
        except DriverError as error:
            self.note(f"{type(error).__name__}: {error}")

    def serve(self, runtime: Runtime) -> None:
        """Run until all requests have ended, and note how."""
        runtime.run_until_done()
        for r in runtime.requests:
            self.note(
                f"request {r.number} {r.state.value} {r.arrival} {r.started} {r.ended} {r.preempted} {r.repeated} "
                f"{r.error}"
            )
            self.results(r.results)
        for span in runtime.spans():
            self.note(f"span {span.kind} {span.begin} {span.end} {span.bytes}")
        self.note(f"left {len(self.device.outstanding)} {len(self.device.suspensions)} {runtime.switches}")

    def fail_once(self, op: Op, *, own: bool = False, skip: int = 0) -> None:
        """An instruction of ``op`` faults after ``skip`` others: of a model, or of the driver's ``own`` jobs."""
        seen = iter(range(1_000_000))

        def inject(engine: int, insn) -> Fault | None:
            of_driver = self.soc._bodies[engine].job["tag"] >> 16 >= _OF_THE_DRIVER
            return Fault.BUS if insn.op is op and of_driver == own and next(seen) == skip else None

        self.soc.inject = inject

    def slave_error(self, address: int, size: int, cycles: int = 100_000) -> None:
        """The memory answers with an error there for so many cycles."""
        self.faulty.set_dram_fault(DramFault.SLVERR, address, size, cycles=cycles)
