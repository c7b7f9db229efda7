"""What an LD0 is said to write is what the machine finds that it does."""

import random

import numpy as np
import pytest

from compiler.emission.program import JobProgram
from compiler.emission.program.extents import written
from hw.contract.isa import Insn, Lv0Space, Op
from hw.contract.params import preset
from sim.functional.units import Units
from tests.support.random_copies import random_copy


@pytest.mark.parametrize("space", [Lv0Space.ACT, Lv0Space.WGT, Lv0Space.INT4])
def test_bytes_of_each_pe(space):
    params, rng = preset("tiny"), random.Random(1)
    machine, job, seen = Units(params, np.zeros(0, np.uint8)), JobProgram(params, 0), 0
    while seen < 20:
        insn = random_copy(rng, Op.LD0, params)
        if insn["space"] != space:
            continue
        machine.execute(Insn(Op.LD0, insn.fields), [(0, 0)] * 8)
        write = machine.accesses[-1]
        low, high = write.where.bounds()
        extent = written(job.emit(Op.LD0, insn.fields), params)
        assert extent.space == write.space
        assert extent.low // params.rows == low and -(-extent.high // params.rows) == high
        seen += 1
