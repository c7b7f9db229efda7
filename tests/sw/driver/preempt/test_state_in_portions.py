"""State in more pieces than the programs of one engine have room for: it is moved in portions."""

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import INSN_BYTES
from hw.contract.job import Fault
from hw.contract.params import preset
from sw.driver import Device, DeviceFault
from sw.driver.errors import SupervisorFault
from sw.driver.preempt.supervisor import CODE_BYTES
from tests.support.fake_soc import FakeSoc
from tests.support.images import copy_image
from tests.support.large_states import LV1, LV2, in_fragments, with_a_row_to_spare
from tests.support.model_soc import ModelSoc
from tests.support.preempt_images import smashing_image

TINY, BASE = preset("tiny"), preset("base")
LIMIT = 10_000_000
BEYOND_ITS_INPUT = "LD2 src_seg=2 dst_seg=6 src=60 len=64 hi=64 hi1=1 hi0=1\nEND"
SECOND = CODE_BYTES // INSN_BYTES + 100  #: an instruction of a dump or restore beyond its first portion


class Kept:
    """What ``model``, which stands at a point, has to find again."""

    def __init__(self, device, model, whole=False):
        self._engine, self._lv2 = device.bus.machine.engines[0], device.bus.machine.lv2
        self._base, self._whole = model.segments[6][0], whole
        random = np.random.default_rng(7)
        for memory in (self._engine.lv1[2200:], self._lv2[self._base + 1100 : self._base + 1700]):
            memory[:] = random.integers(0, 256, memory.shape)
        self._engine.acc[8:] = random.integers(-(1 << 31), 1 << 31, self._engine.acc[8:].shape)
        self._now = self._look()

    def _look(self):
        if self._whole:
            return [self._engine.lv1[2200:].copy(), self._engine.acc[8:].copy()]
        return [self._engine.lv1[LV1].copy(), self._lv2[np.array(LV2) + self._base].copy()]

    def check(self):
        for before, after in zip(self._now, self._look(), strict=True):
            np.testing.assert_array_equal(after, before)


def begin(device, model, seed=0):
    data = np.random.default_rng(seed).integers(-128, 128, (1, 8, 8)).astype(np.int8)
    model.write_tensor("x", data)
    device.begin(model, LIMIT)
    return data, device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)


def end(device, model, data, ids):
    device.collect(ids, LIMIT)
    np.testing.assert_array_equal(model.read_tensor("y"), data)


def suspended(device, victim, whole=False):
    """Suspends ``victim`` at a point; returns its suspension, what it has to keep, and what it computes."""
    work = begin(device, victim)
    for steps in range(3, 40):
        for _ in range(steps):
            device.bus.step()
        suspension = device.suspend([0], verify=True)
        if suspension.points:
            break
        device.resume(suspension)  # from its start: it had not begun
    assert suspension.points
    return suspension, Kept(device, victim, whole), work


def gone_at(number, engine=0, code=Fault.BUS):
    """A fault of that instruction of ``engine``, counted from now."""
    seen = [0]

    def inject(at, insn):
        seen[0] += at == engine
        return code if at == engine and seen[0] == number else None

    return inject


@pytest.mark.parametrize("params", [TINY, BASE], ids=["one engine", "two engines"])
@pytest.mark.parametrize("image", [in_fragments, with_a_row_to_spare])
def test_state_of_any_number_of_pieces_leaves_the_chip_and_comes_back(soc, params, image):
    device = Device(soc(params, costs=HostCosts.free()))
    victim, urgent = device.load(image(params)), device.load(smashing_image(params))
    suspension, kept, work = suspended(device, victim, image is with_a_row_to_spare)
    dump = device.admit(urgent)
    assert dump in device.operations
    end(device, urgent, *begin(device, urgent, 1))
    restore = device.resume(suspension)
    end(device, victim, *work)
    kept.check()
    assert not device.suspensions and not device.transferring and not dump.jobs and not restore.jobs
    moved = [sum(result.bytes for result in operation.results) for operation in (dump, restore)]
    dirty, clean = sum(r.size for r in suspension.dirty), sum(c.end - c.start for c in suspension.clean)
    assert moved == [dirty, dirty + clean]
    end(device, victim, *begin(device, victim, 2))
    device.unload(victim)


@pytest.mark.parametrize(
    ("direction", "image", "failing"),
    [
        ("dump", in_fragments, 1),
        ("dump", in_fragments, SECOND),
        ("dump", with_a_row_to_spare, 130),  # behind the first program of a job that takes several
        ("restore", in_fragments, 1),
        ("restore", in_fragments, SECOND),
    ],
)
def test_a_fault_in_any_portion_loses_nothing(direction, image, failing):
    device = Device(FakeSoc(TINY, costs=HostCosts.free()))
    victim, urgent = device.load(image(TINY)), device.load(smashing_image(TINY))
    suspension, kept, work = suspended(device, victim, image is with_a_row_to_spare)

    def fails(action):
        device.bus.inject = gone_at(failing)
        with pytest.raises(SupervisorFault, match=f"{direction} job of the driver, for 'walk'"):
            action()
            device.settle()
        assert device.transferring and suspension in device.suspensions
        device.bus.inject = gone_at(0)
        device.recover()
        assert not device.transferring and device.bus.resets

    if direction == "dump":
        fails(lambda: device.admit(urgent))
        copied = sum(r.copy is not None for r in suspension.dirty)
        assert (copied > 0) == (failing == SECOND) and all(r.on_chip for r in suspension.dirty if r.copy is None)
    device.admit(urgent)
    end(device, urgent, *begin(device, urgent, 1))
    if direction == "restore":
        fails(lambda: device.resume(suspension))
        assert all(r.on_chip or r.copy is not None for r in suspension.dirty)
        device.admit(urgent)
        end(device, urgent, *begin(device, urgent, 3))
    device.resume(suspension)
    end(device, victim, *work)
    kept.check()
    end(device, victim, *begin(device, victim, 2))


@pytest.mark.parametrize("direction", ["dump", "restore"])
def test_a_fault_of_another_model_meanwhile_is_that_model_s_alone(direction):
    device = Device(ModelSoc(BASE, costs=HostCosts.free()))
    other = device.load(copy_image(BASE, BEYOND_ITS_INPUT, name="other"), [1])
    victim, urgent = device.load(in_fragments(BASE)), device.load(smashing_image(BASE, windows=(1 << 20, 1 << 19)))
    suspension, kept, work = suspended(device, victim)
    if direction == "restore":
        device.admit(urgent)
        end(device, urgent, *begin(device, urgent, 1))
    begin(device, other)
    with pytest.raises(DeviceFault, match="of 'other'"):
        device.admit(urgent) if direction == "dump" else device.resume(suspension)
    assert suspension in device.suspensions and device.transferring
    device.abort(other)
    assert not device.transferring
    if direction == "dump":
        device.admit(urgent)
        end(device, urgent, *begin(device, urgent, 1))
    device.resume(suspension)
    end(device, victim, *work)
    kept.check()
