"""The driver's constants of register accesses are what it does: static bounds are made from them."""

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device
from sw.driver.models.model_jobs import SUBMIT_ACCESSES
from sw.driver.preempt.halting import RECORD_ACCESSES
from sw.driver.queues.engine_queue import EMPTY_ACCESSES, SERVE_ACCESSES
from tests.support.preempt_images import walking_image

LIMIT = 1_000_000


class CountingBus(ModelBus):
    """Counts register accesses."""

    def __init__(self):
        super().__init__(preset("tiny"), costs=HostCosts.free())
        self.accesses = 0

    def read_reg(self, address):
        self.accesses += 1
        return super().read_reg(address)

    def write_reg(self, address, value):
        self.accesses += 1
        super().write_reg(address, value)


def counted(device, action):
    before = device.bus.accesses
    action()
    return device.bus.accesses - before


def test_accesses_of_each_action():
    device = Device(CountingBus())
    model = device.load(walking_image(preset("tiny"), jobs=3))
    device.begin(model, LIMIT)
    assert counted(device, lambda: device.submit(model, [0], limit=0)) <= SUBMIT_ACCESSES
    while not device.bus.wait_irq(LIMIT):
        pass
    assert counted(device, lambda: device.poll(LIMIT)) == SERVE_ACCESSES - 1  # the ring holds few jobs: no CPL_TAIL
    device.submit(model, [1, 2], limit=0)
    queue = device.engines[0]
    queue.pause()
    while queue.state() != 2 and not queue.register("HALT_CYCLE_LO"):
        device.bus.advance(1)
    read = counted(device, lambda: device.pause([0]))
    assert read <= 1 + SERVE_ACCESSES + RECORD_ACCESSES  # the pause, its interrupt, and where the engine stands
    assert counted(device, lambda: device.engines[0].take_off()) <= EMPTY_ACCESSES
