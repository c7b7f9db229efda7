"""The driver is built from parts, each from those before it: no part needs one that comes after it."""

import numpy as np

from hw.contract.params import preset
from sw.driver.memory.allocator import Allocator, WindowPool
from sw.driver.memory.placement import place
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.models.model_jobs import ModelJobs
from sw.driver.preempt.preemption import Preemption
from sw.driver.queues.events import EventPool
from sw.driver.queues.job_queues import JobQueues
from sw.driver.queues.registers import RegisterAccess
from sw.driver.scrub import Scrubber
from tests.support.images import copy_image

TINY, LIMIT = preset("tiny"), 1_000_000


def test_each_part_works_before_the_next_is_made(soc):
    bus = soc(TINY)
    regs = RegisterAccess(bus)
    dram, lv2 = Allocator("DRAM", 0, TINY.dram_bytes), WindowPool(TINY.lv2_bytes)
    events = EventPool(regs, TINY.events)
    queues = JobQueues(bus, regs, dram, 2)
    scrubber = Scrubber(queues, dram, lv2)
    jobs = ModelJobs(queues, scrubber, lv2)

    image = copy_image(TINY)
    models = []
    for number, tenant in enumerate("ab"):
        placement = place(image, dram, lv2)
        model = LoadedModel(bus, image, placement, events.lease(0, tenant), number, (0,), tenant)
        bus.write_mem(model.segments[0][0], model.code, charge=False)
        models.append(model)
    models[1].move_windows(*(base for base, _ in models[0].lv2_parts()))
    for model in models:
        data = np.full((1, 8, 8), model.number + 1, np.int8)
        model.write_tensor("x", data)
        jobs.wait_for_windows(model, LIMIT)
        jobs.begin(model, ())
        jobs.collect(jobs.submit(model, [0], limit=LIMIT, cycle_limit=None, engine=None), LIMIT)
        np.testing.assert_array_equal(model.read_tensor("y"), data)
    assert scrubber.cleared == 4  # engine and windows, for each of the two

    preemption = Preemption(queues, jobs, dram, events)
    jobs.begin(models[0], ())
    queued = jobs.submit(models[0], [0], limit=LIMIT, cycle_limit=None, engine=None)
    preemption.resume(preemption.suspend([0]))
    jobs.collect(queued, LIMIT)
