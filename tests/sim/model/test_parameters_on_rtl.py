"""Jobs with parameters on the RTL, the fast model and the functional machine: what they compute, and when."""

import random

import numpy as np
import pytest

from benchmarks.trust.hidden_numbers import hidden, parameters
from hw.contract.bus import HostCosts
from hw.contract.isa import Insn, Op
from hw.contract.job import Fault, FaultUnit, JobFlag
from hw.contract.params import preset
from hw.contract.slots import Added
from sim.functional.machine import FunctionalFault, Machine
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from tests.hw.soc_bench import CODE, DATA, DATA_BYTES, LV2_BYTES, SocBench
from tests.hw.test_engine import PROLOGUE, inputs, program
from tests.sim.model.bench import record
from tests.sim.model.test_units_on_rtl import random_insn

TINY = preset("tiny")


def named(values):
    return {"flags": JobFlag.PARAMS} | {f"param{number}": value for number, value in enumerate(values)}


@pytest.fixture(scope="module")
def buses():
    opened = [open_bus(TINY, costs=HostCosts.free()), ModelBus(TINY, costs=HostCosts.free())]
    yield opened
    for bus in opened:
        bus.close()


def run(bus, body, content, values=()):
    """Run a job on ``bus``; its completion, and what it leaves in DRAM."""
    bench = SocBench(TINY, bus=bus)
    bench.write("CONTROL", 2)
    bus.advance(200)
    bench.setup()
    bus.write_mem(bench.data(), content)
    bench.job(body, prologue=program(PROLOGUE), **(named(values) if values else {}))
    bench.ring()
    bench.wait(1)
    return bench.completion(0), bus.read_mem(bench.data(), DATA_BYTES)


def test_a_job_through_every_unit(buses):
    """Its numbers are partly in its parameters; it ends as the plain one does."""
    rng = random.Random(5)
    content, body = inputs(5)
    late = []
    for bus in buses:
        plain, wanted = run(bus, body, content)
        assert plain["status"] == Fault.NONE
        spans = [plain["end"] - plain["start"]]
        rng.seed(5)
        for _ in range(3):
            values = parameters(rng)
            told, found = run(bus, hidden(rng, body, values), content, values)
            assert told["status"] == Fault.NONE and found == wanted
            spans.append(told["end"] - told["start"])
        late.append(spans)
    assert np.abs(np.subtract(*late)).max() <= 12, late


def test_the_functional_machine(buses):
    rng = random.Random(6)
    content, body = inputs(6)
    _, wanted = run(buses[0], body, content)
    values = parameters(rng)
    code = [*hidden(rng, body, values), *program(PROLOGUE)]
    machine = Machine(TINY)
    raw = b"".join(insn.encode() for insn in code)
    machine.dram[CODE : CODE + len(raw)] = np.frombuffer(raw, np.uint8)
    machine.dram[DATA : DATA + DATA_BYTES] = np.frombuffer(content, np.uint8)
    segments = [(0, 0)] * 8
    segments[0], segments[2], segments[6] = (CODE, DATA - CODE), (DATA, DATA_BYTES), (0, LV2_BYTES)
    machine.run_job(segments, 0, len(body), parameters=values)
    assert machine.dram[DATA : DATA + DATA_BYTES].tobytes() == wanted
    with pytest.raises(FunctionalFault, match="its job has none"):
        machine.run_job(segments, 0, len(body))


@pytest.mark.parametrize("flags", [0, JobFlag.RESUME])
def test_when_instructions_run_is_known_to_the_cycle(flags):
    """VEC, of which the model is exact; each parameter costs what it costs on the RTL, as do all of them in a job."""
    for seed in range(3):
        rng = random.Random(seed)
        values = parameters(rng)
        body = hidden(rng, [random_insn(rng, Op.VEC, TINY) for _ in range(20)], values)
        fields = named(values) | {"flags": JobFlag.PARAMS | flags}
        (rtl, told), (model, said) = record(TINY, [body, body], fields=fields)
        for real, modelled in zip(rtl.values(), model.values(), strict=True):
            assert np.diff(np.array(real).ravel()).tolist() == np.diff(np.array(modelled).ravel()).tolist(), seed
        for real, modelled in zip(told, said, strict=True):
            assert real["end"] - real["start"] == modelled["end"] - modelled["start"], seed


@pytest.mark.parametrize(
    ("flags", "value", "prologue"), [(0, 1, False), (JobFlag.PARAMS, 4095, False), (JobFlag.PARAMS, 0, True)]
)
def test_faults_are_those_of_the_rtl(buses, flags, value, prologue):
    """An instruction that names a parameter where there is none, whose field cannot hold the sum, in a prologue."""
    told = []
    wrong = Insn(Op.LD2, {"dst_seg": 6, "src_seg": 2}, (Added("src", 1),))
    if not prologue:
        wrong = Insn(Op.VEC, {"d": 2048}, (Added("d", 0), Added("n0", 1)))
    for bus in buses:
        bench = SocBench(TINY, bus=bus)
        bench.write("CONTROL", 2)
        bus.advance(200)
        bench.setup()
        end = Insn(Op.END)
        body = [end] if prologue else [Insn(Op.CANCEL), wrong, end]
        bench.job(body, prologue=[wrong, end] if prologue else None, flags=flags, param1=value)
        bench.ring()
        bench.wait(1)
        completion = bench.completion(0)
        told.append({name: completion[name] for name in ("status", "unit", "pc", "address")})
    assert told[0] == told[1]
    assert told[0]["status"] == Fault.ILLEGAL
    assert told[0]["unit"] == (FaultUnit.LOADER if prologue else FaultUnit.EXECUTOR)
