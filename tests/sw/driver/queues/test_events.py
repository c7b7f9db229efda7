import pytest

from hw.contract.params import preset
from sw.driver.errors import DriverError
from sw.driver.queues.events import EventPool
from sw.driver.queues.registers import RegisterAccess


@pytest.fixture
def regs(soc):
    return RegisterAccess(soc(preset("tiny")))


def test_waits_count_from_the_beginning_of_the_inference(regs):
    regs.write("EVENT[0]", 0xFFFFFFFF)
    lease = EventPool(regs, 4).lease(2, "m")
    lease.begin()
    assert lease.wait(0, 2) == (0, 1)
    assert lease.wait(1, 2) == (1, 2)
    assert [lease.signalled(0), lease.signalled(0)] == [0, 0]
    assert lease.wait(0, 1) == (0, 0)
    lease.begin()
    assert lease.wait(0, 1) == (0, 2)


def test_synchronise_follows_the_hardware_after_a_failure(regs):
    lease = EventPool(regs, 4).lease(1, "m")
    lease.signalled(0)
    lease.synchronise()
    lease.begin()
    assert lease.wait(0, 1) == (0, 1)


def test_pool_runs_out_and_takes_back(regs):
    pool = EventPool(regs, 4)
    lease = pool.lease(3, "a")
    with pytest.raises(DriverError, match="'b' needs 2 hardware events, 1 of 4 are free"):
        pool.lease(2, "b")
    pool.release(lease)
    assert pool.lease(4, "b").numbers == [0, 1, 2, 3]
