"""What the vector unit calls illegal, against the functional model: random fields, most of them nearly legal."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import FORMATS, Insn, Op, VecOp
from hw.contract.job import Fault
from hw.contract.params import preset
from hw.interfaces import struct_layout
from hw.vec import check
from sim.functional.machine import FunctionalFault, Machine
from tests.support.streams import simulate

TINY = preset("tiny")
FLAGS = ("src_acc", "b_en", "table", "per_channel", "across", "row", "planes", "plain")
SEGMENTS = [(0, 0)] * 8


class Check(wiring.Component):
    """The checks as a component."""

    def __init__(self, params) -> None:
        self._params = params
        super().__init__({"insn": In(struct_layout(Op.VEC)), "illegal": Out(1), "beyond": Out(1), "at": Out(24)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.illegal.eq(check.illegal(m, self.insn, self._params))
        beyond, at = check.beyond(m, self.insn, self._params)
        m.d.comb += [self.beyond.eq(beyond), self.at.eq(at)]
        unused = Signal()
        m.d.sync += unused.eq(0)
        return m


def random_fields(params, rand: random.Random) -> dict[str, int]:
    """Of an instruction that goes along with its operation, but for one or two fields."""
    op, lanes = rand.choice(list(VecOp)), params.vec_lanes
    fields = {"op": op, "p": 0, "n2": rand.choice([1, 3]), "n0": rand.choice([1, 1, params.vec_groups])}
    if op == VecOp.RAW:
        fields |= {"src_acc": 1, "n2": 4}
    if op in (VecOp.MUL, VecOp.LOOKUP) or (op == VecOp.LIN and rand.random() < 0.5):
        fields["b_en"] = 1
        fields["row"] = int(op == VecOp.LOOKUP or (op == VecOp.LIN and rand.random() < 0.5))
    if op in (VecOp.MAX, VecOp.SUM, VecOp.MOMENTS, VecOp.LOOKUP) and (op == VecOp.MOMENTS or rand.random() < 0.5):
        fields |= {"across": 1, "n0": 1, "tail": rand.choice([0, 0, 1, lanes])}
    elif rand.random() < 0.3 and op != VecOp.RAW:
        fields |= {"planes": 1, "n2": 3}
    if op == VecOp.MOMENTS:
        fields["plain"] = rand.randrange(2)
    changes = {name: lambda name=name: 1 - fields.get(name, 0) for name in FLAGS}
    changes |= {"op": lambda: rand.randrange(8), "n2": lambda: rand.randint(1, 4), "k0": lambda: rand.randint(1, 2)}
    changes |= {"k1": lambda: rand.randint(1, 2), "n0": lambda: rand.randint(1, params.vec_groups + 1)}
    changes |= {"tail": lambda: rand.choice([1, lanes, lanes + 1]), "a_signed": lambda: 1, "b_signed": lambda: 1}
    changes |= {name: lambda: rand.choice([1, 8, 512, params.lv1_bytes - 1024]) for name in "pt"}
    for name in rand.sample(sorted(changes), rand.choice([0, 0, 1, 1, 2])):
        fields[name] = changes[name]()
    return {name: int(value) for name, value in fields.items()}


def fault_of(machine: Machine, insn: Insn) -> Fault | None:
    try:
        machine.execute(insn, SEGMENTS)
    except FunctionalFault as fault:
        return Fault(fault.code)
    return None


@pytest.mark.parametrize(
    "params",
    [TINY, TINY.replace(vec_lanes=4), preset("base").replace(engines=1)],
    ids=["tiny", "four lanes", "base"],
)
def test_illegal_fields_are_those_of_the_functional_model(params):
    rand, machine = random.Random(params.vec_lanes), Machine(params, dram=np.zeros(64, np.uint8))
    insns = [Insn(Op.VEC, random_fields(params, rand)) for _ in range(3000)]
    wanted = [fault_of(machine, insn) for insn in insns]
    assert {None, Fault.ILLEGAL} <= set(wanted)
    dut = Check(params)

    async def testbench(ctx) -> None:
        for insn, fault in zip(insns, wanted, strict=True):
            ctx.set(dut.insn, dut.insn.shape().from_bits(int.from_bytes(insn.encode(), "little")))
            assert ctx.get(dut.illegal) == (fault == Fault.ILLEGAL), (insn, fault)

    simulate(dut, testbench)


@pytest.mark.parametrize("op", [VecOp.LIN, VecOp.LOOKUP])
def test_parameters_and_tables_lie_in_lv1(op):
    """The last place where each fits, and the next one."""
    machine, dut = Machine(TINY, dram=np.zeros(64, np.uint8)), Check(TINY)
    base = {"op": op, "p": 0, "b_en": op == VecOp.LOOKUP, "row": op == VecOp.LOOKUP, "table": op == VecOp.LIN}
    block = TINY.vec_header_bytes + 8 * TINY.vec_lanes
    fits = {"p": TINY.lv1_bytes - block, "t": TINY.lv1_bytes - (256 if op == VecOp.LIN else 1024)}
    assert set(fits) < {field.name for field in FORMATS[Op.VEC]}

    async def testbench(ctx) -> None:
        for name, last in fits.items():
            for at in (last, last + TINY.lv1_word):
                insn = Insn(Op.VEC, {key: int(value) for key, value in (base | {name: at}).items()})
                ctx.set(dut.insn, dut.insn.shape().from_bits(int.from_bytes(insn.encode(), "little")))
                assert not ctx.get(dut.illegal)
                assert ctx.get(dut.beyond) == (at > last) == (fault_of(machine, insn) is Fault.LIMIT)
                if at > last:
                    assert ctx.get(dut.at) == at

    simulate(dut, testbench)
