"""Parameters of jobs: what is dispatched is what ``Insn.resolve`` says, and what cannot be resolved is ILLEGAL where it
stands. On the control alone, with stub units."""

import random

import pytest

from hw.contract.formats import COPY_SLOTS, PARAMETERS, VEC_SLOTS
from hw.contract.isa import FORMATS, Insn, IsaError, Op
from hw.contract.job import Fault, FaultUnit, JobFlag
from hw.contract.slots import WRAPPING, Added
from hw.control.decode import Decoder
from tests.hw.control.bench import END, PARAMS, ControlBench, insn
from tests.hw.control.test_decode import verdicts
from tests.support.raw_insns import COPIES

NAMES = [f"param{number}" for number in range(PARAMETERS)]
SLOTS = {op: COPY_SLOTS for op in (*COPIES, Op.LD0)} | {Op.VEC: VEC_SLOTS}


def with_slots(rng: random.Random, op: Op, values: list[int]) -> Insn:
    """An instruction with random fields that names as many of ``values`` as it can hold, up to a random number."""
    plain = insn(op)
    widths = {f.name: f for f in FORMATS[op]}
    fields = {name: rng.randint(widths[name].minimum, widths[name].maximum >> 1) for name in SLOTS[op].fields}
    made = Insn(op, plain.fields | fields)
    for _ in range(rng.randint(0, SLOTS[op].count)):
        longer = Insn(op, made.fields, (*made.added, Added(rng.choice(SLOTS[op].fields), rng.randrange(PARAMETERS))))
        try:
            longer.resolve(values)
        except IsaError:
            continue
        made = longer
    return made


def run(bench: ControlBench, jobs: int) -> None:
    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.retired(ctx, jobs, 20_000)

    bench.run(testbench)


def dispatched(bench: ControlBench) -> dict[int, Insn]:
    return {pc: taken for stub in bench.units for pc, taken, *_ in stub.log}


def plain(insn: Insn, values: list[int]) -> Insn:
    """What is to be dispatched, without the fields that are at their defaults."""
    return Insn.decode(insn.resolve(values).encode())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_what_is_dispatched_is_what_resolve_says(seed):
    rng = random.Random(seed)
    bench = ControlBench(seed=seed, stall=0.1 * seed)
    wanted: dict[int, Insn] = {}
    for _ in range(6):
        values = [rng.choice((0, 1, 3, 200, 60_000, rng.getrandbits(32))) for _ in NAMES]
        parameters = rng.random() < 0.75
        body = [with_slots(rng, rng.choice(list(SLOTS)), values) if parameters else insn(Op.MAC) for _ in range(25)]
        pc = bench.code_end
        bench.job(*body, END, flags=JobFlag.PARAMS * parameters, **dict(zip(NAMES, values, strict=True)))
        wanted |= {pc + place: plain(each, values) for place, each in enumerate(body)}
    run(bench, 6)
    assert dispatched(bench) == wanted, f"seed {seed}"
    assert [bench.completion(index)["status"] for index in range(6)] == [Fault.NONE] * 6
    assert any(each != Insn(each.op) for each in wanted.values())


def test_every_field_that_can_be_named():
    values = [7, 0, 0, 0, 0, 0, 0, 0xFFFF_FFFF]
    body = [Insn(op, insn(op).fields, (Added(name, 0),)) for op in SLOTS for name in SLOTS[op].fields]
    back = [
        Insn(op, insn(op).fields | {name: 5}, (Added(name, 7),))
        for op in SLOTS for name in SLOTS[op].fields if name in WRAPPING
    ]  # fmt: skip
    bench = ControlBench()
    bench.job(*body, *back, END, flags=JobFlag.PARAMS, **dict(zip(NAMES, values, strict=True)))
    run(bench, 1)
    found = dispatched(bench)
    assert [found[pc] for pc in range(len(body))] == [plain(each, values) for each in body]
    for pc, each in enumerate(back, len(body)):
        assert found[pc][each.added[0].field] == 4


def test_one_field_may_be_named_twice():
    bench = ControlBench()
    twice = Insn(Op.VEC, {"n0": 2}, (Added("n0", 1), Added("n0", 1), Added("n0", 2)))
    bench.job(twice, END, flags=JobFlag.PARAMS, param1=10, param2=100)
    run(bench, 1)
    assert dispatched(bench)[0]["n0"] == 122


def test_a_job_that_goes_on_has_semaphores_and_parameters():
    bench = ControlBench()
    body = insn(Op.MAC, wait=(3,)), Insn(Op.VEC, {"wait": 1 << 20}, (Added("k0", 6),)), END
    flags = JobFlag.PARAMS | JobFlag.RESUME
    bench.job(*body, flags=flags, sem3=1, sem20=1, param6=9)
    bench.job(insn(Op.MAC, wait=(3,)), END, flags=JobFlag.RESUME, sem3=1, param6=9)
    run(bench, 2)
    assert dispatched(bench)[1]["k0"] == 10
    assert [bench.completion(index)["status"] for index in range(2)] == [Fault.NONE] * 2


@pytest.mark.parametrize(
    ("flags", "value", "added"),
    [
        (0, 1, (Added("n1", 2),)),  # the job has no parameters
        (JobFlag.PARAMS, 4095, (Added("n1", 2),)),  # 1 + 4095
        (JobFlag.PARAMS, 0xFFFF_FFFF, (Added("n1", 2),)),
        (JobFlag.PARAMS, 128, (Added("k0", 2), Added("n1", 0), Added("k0", 2))),  # the second time
    ],
)
def test_what_cannot_be_resolved_is_illegal_where_it_stands(flags, value, added):
    bench = ControlBench()
    before = insn(Op.MAC)
    bench.job(before, Insn(Op.VEC, {}, added), insn(Op.MAC), END, flags=flags, param2=value)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.faulted(ctx)

    bench.run(testbench)
    told = bench.completion(0)
    assert (told["status"], told["unit"], told["pc"]) == (Fault.ILLEGAL, FaultUnit.EXECUTOR, 1)
    assert list(dispatched(bench)) == [0]


def test_the_largest_sums_are_legal():
    bench = ControlBench()
    bench.job(Insn(Op.VEC, {}, (Added("n1", 2), Added("k0", 3))), END, flags=JobFlag.PARAMS, param2=4094, param3=254)
    run(bench, 1)
    assert dispatched(bench)[0].fields == {"n1": 4095, "k0": 255}


def test_a_prologue_names_none():
    bench = ControlBench()
    load = Insn(Op.LD2, insn(Op.LD2).fields, (Added("src", 0),))
    bench.job(END, prologue=(load, END), flags=JobFlag.PARAMS)

    async def testbench(ctx):
        await bench.enable(ctx)
        await bench.faulted(ctx)

    bench.run(testbench)
    told = bench.completion(0)
    assert (told["status"], told["unit"]) == (Fault.ILLEGAL, FaultUnit.LOADER)


def raw_slots(op: Op, *slots: tuple[int, int]) -> bytes:
    """An instruction with these selectors and parameters in its slots."""
    word = int.from_bytes(insn(op).encode(), "little")
    for number, (selector, parameter) in enumerate(slots):
        place = SLOTS[op].first + number * SLOTS[op].slot_bits
        word |= (selector | parameter << SLOTS[op].selector_bits) << place
    return word.to_bytes(64, "little")


def test_decoders_agree_on_slots():
    """On every selector of a slot, with and without a parameter, and on slots behind one that is not in use."""
    decoder = Decoder(PARAMS)
    raws = [
        raw_slots(op, *before, (selector, parameter))
        for op in (Op.LD0, Op.VEC)
        for before in ((), ((0, 0),), ((1, 7),))
        for selector in range(1 << SLOTS[op].selector_bits)
        for parameter in (0, 5)
    ]
    named, plain = [], []
    for raw in raws:
        try:
            added = Insn.decode(raw).added
        except IsaError:
            added = None
        named.append(int(added is None))
        plain.append(int(added is None or bool(added)))
    assert 0 < sum(named) < sum(plain)
    assert verdicts(decoder, raws) == plain
    decoder = Decoder(PARAMS)
    assert verdicts(decoder, raws, parameters=1) == named


def test_each_parameter_takes_two_cycles():
    """From one instruction to the next, with units that take whatever comes."""
    spans = []
    for count in range(4):
        bench = ControlBench(latency=(1, 1))
        slow = Insn(Op.VEC, {}, (Added("d", 1),) * count)
        bench.job(insn(Op.MAC), *[slow] * 8, END, flags=JobFlag.PARAMS, param1=8)
        run(bench, 1)
        told = bench.completion(0)
        spans.append(told["end"] - told["start"])
    assert [after - spans[0] for after in spans] == [0, 16, 32, 48]
