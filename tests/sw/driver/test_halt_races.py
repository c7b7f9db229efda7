"""A pause is answered whatever happens between two accesses of the driver."""

import pytest

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device
from tests.support.preempt_images import walking_image

LIMIT = 1_000_000
PHASES = 400


@pytest.mark.parametrize("access", [1, 7, 50])
def test_pause_at_any_phase_of_a_run(access):
    """An engine may retire a job and halt between the accesses that look at it: no halt is missed."""
    params = preset("tiny")
    device = Device(ModelBus(params, costs=HostCosts(register_access=access)))
    image = walking_image(params, jobs=3)
    model = device.load(image)
    device.begin(model, LIMIT)
    begin = device.bus.cycle
    jobs = device.submit(model, [0, 1, 2], limit=0)
    device.collect(jobs, LIMIT)
    span = device.bus.cycle - begin
    for phase in range(PHASES):
        device.begin(model, LIMIT)
        jobs = [job for index in range(3) for job in device.submit(model, [index], limit=0)]  # each interrupts
        device.bus.advance(span * phase // PHASES)
        halts = device.pause([0], limit=100_000)
        outstanding = device.engines[0].outstanding
        assert bool(halts[0].cycle) == bool(outstanding), phase
        device.preemption.halting.go_on([0])
        device.collect(jobs, LIMIT)
        device.end(model)
