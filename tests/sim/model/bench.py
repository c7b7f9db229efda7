"""The same job on the RTL and on the fast model."""

from collections.abc import Mapping, Sequence

from hw.contract.bus import HostCosts
from hw.contract.isa import Insn
from hw.contract.params import SocParams
from sim.instruction_runs import InstructionRun
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from sim.rtl.recording import RecordingBus
from tests.hw.soc_bench import END, SocBench
from tests.support.random_copies import SEGMENT


def record(
    params: SocParams, bodies: Sequence[Sequence[Insn]], fields: Mapping[str, int] | None = None
) -> tuple[list, list]:
    """What the recorders of both tell of jobs with these ``bodies``, by unit and in order, and their completions.
    ``fields``: of their descriptors."""
    rtl = RecordingBus(open_bus(params, costs=HostCosts.free()))
    model = ModelBus(params, costs=HostCosts.free(), data=False)
    model.record()
    return tuple(_run(bus, params, bodies, fields or {}) for bus in (rtl, model))


def _run(bus: RecordingBus | ModelBus, params: SocParams, bodies: Sequence[Sequence[Insn]], fields: Mapping[str, int]):
    with bus:
        bench = SocBench(params, bus=bus)
        bench.setup()
        for body in bodies:
            bench.job([*body, END], limit1=SEGMENT, base5=bench.data(), limit5=SEGMENT, limit6=SEGMENT, **fields)
        bench.ring()
        bench.wait(len(bodies), limit=300_000)
        completions = [bench.completion(index) for index in range(len(bodies))]
        assert [entry["status"] for entry in completions] == [0] * len(bodies), completions
        return by_unit(bus.runs), completions


def by_unit(runs: Sequence[InstructionRun]) -> dict:
    """Acceptance and signal of the instructions of each unit, in order."""
    units: dict = {}
    for run in sorted(runs, key=lambda run: run.taken):
        units.setdefault((run.engine, run.unit), []).append((run.taken, run.done))
    return units
