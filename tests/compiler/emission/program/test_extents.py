"""What an instruction is said to write is what the machine finds that it does, and what its boxes are."""

import random

import numpy as np
import pytest

from compiler.emission.program import JobProgram
from compiler.emission.program.extents import written, written_box
from compiler.emission.program.task import Task
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


@pytest.mark.parametrize("op", [Op.LD1, Op.LD2, Op.ST1, Op.ST2])
def test_hulls_are_those_of_the_boxes(op):
    """They are found without these, also where strides go back, or loops do nothing."""
    rng = random.Random(op.name)
    for _ in range(500):
        counts = {f"n{loop}": rng.randint(0, 4) for loop in range(3) if rng.random() < 0.7}
        strides = {f"dst_s{loop}": rng.randint(-300, 300) for loop in range(3) if rng.random() < 0.7}
        task = Task(op, {"dst": rng.randint(0, 5000), "len": rng.randint(0, 70), "dst_seg": 1} | counts | strides)
        extent = written(task, preset("tiny"))
        assert (extent.low, extent.high) == written_box(task).bounds(), task
