"""Memories that say that nobody looks at a word which is read while it is written (``hw.block_ram.NO_COLLISION``): what
they are read for is the same if such words are nonsense, as block RAM may make them."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module

import caesura
from caesura.samples import random_samples
from compiler.compile import compile_model
from hw import Soc, scratchpad
from hw.block_ram import NO_COLLISION
from hw.contract.params import preset
from hw.control import events, loader, retire, ring, unit_queue
from hw.mac import accumulators, lv0
from hw.vec import lane, parameters
from sim.model import ModelBus
from sim.rtl.native.build import native_bus
from sim.rtl.top import SimTop
from tests.hw.mac.test_unit import (
    test_accumulators_are_restored_word_by_word as test_restores,
    test_few_pixels_wait_for_the_accumulator as test_few_pixels,
    test_random_commands_equal_the_model as test_mac,
    test_the_last_row_is_there_when_a_command_is_done as test_last_row,
    test_vec_reads_while_mac_works as test_drains,
)
from tests.hw.vec.test_vec_unit import (
    test_abort_ends_in_mid_flight as test_aborts,
    test_each_command_sees_the_parameters_and_results_of_the_one_before as test_chains,
    test_softmax_and_layer_normalisation_equal_the_model as test_rows,
)
from tests.support.streams import simulate
from tests.support.unchecked_memory import unchecked_where_it_says_so

__all__ = [
    "test_aborts",
    "test_chains",
    "test_drains",
    "test_few_pixels",
    "test_last_row",
    "test_mac",
    "test_restores",
    "test_rows",
]

MEMORIES = (accumulators, events, lane, loader, lv0, parameters, retire, ring, scratchpad, unit_queue)


@pytest.fixture(autouse=True)
def memories(monkeypatch):
    """Every test here meets a memory that says so."""
    found = []

    def made(*arguments, **how):
        found.append(bool(how.get("attrs", {}).get("no_rw_check")))
        return unchecked_where_it_says_so(*arguments, **how)

    for module in MEMORIES:
        monkeypatch.setattr(module, "Memory", made)
    yield
    assert any(found)


def test_nonsense_is_seen_by_who_looks():
    m = Module()
    m.submodules.memory = memory = lane.Memory(shape=8, depth=2, init=[3, 5], attrs=NO_COLLISION)
    write, read = memory.write_port(), memory.read_port()
    found = []

    async def testbench(ctx) -> None:
        ctx.set(read.en, 1)
        for written in (0, 1, 0):
            ctx.set(write.en, written)
            ctx.set(write.addr, 1)
            ctx.set(write.data, 9)
            ctx.set(read.addr, 1)
            await ctx.tick()
            found.append(ctx.get(read.data))

    simulate(m, testbench)
    assert found == [5, 255 - 5, 9]


@pytest.mark.slow
def test_a_network_on_a_machine_whose_memories_are_all_like_this():
    """It takes the cycles that it takes by the model, too, which knows of no write that waits for a read."""
    params = preset("nano")
    image = compile_model("examples/digits/digits.onnx", params)
    feed, results = random_samples(image, 1, 1)[0], []
    for bus in (native_bus(params, lambda: SimTop(params, Soc(params))), ModelBus(params)):
        with caesura.Device(bus) as device:
            results.append(device.load(image).run(feed))
    (outputs, rtl), (expected, model) = results
    assert rtl.cycles == pytest.approx(model.cycles, rel=0.002)
    for name, values in expected.items():
        np.testing.assert_array_equal(outputs[name], values)


@pytest.mark.parametrize("pace", [(0.5, 0.5), (0.9, 0.3), (0.3, 0.9), (1.0, 1.0)])
def test_a_queue_in_two_memories_keeps_its_entries(pace):
    """Entries enter and leave at random, so that the queue is empty, full, and between."""
    dut, rng, given, taken = unit_queue.RamQueue(12, 4, slice(5, 11)), random.Random(3), [], []

    async def testbench(ctx) -> None:
        for _ in range(400):
            value = rng.randrange(1 << 12)
            ctx.set(dut.i.valid, rng.random() < pace[0])
            ctx.set(dut.i.payload, value)
            ctx.set(dut.o.ready, rng.random() < pace[1])
            _, _, entered, room, left, wanted, head = await ctx.tick().sample(
                dut.i.valid, dut.i.ready, dut.o.valid, dut.o.ready, dut.o.payload
            )
            if entered and room:
                given.append(value)
            if left and wanted:
                taken.append(head)

    simulate(dut, testbench)
    assert len(taken) > 50 and taken == given[: len(taken)]
