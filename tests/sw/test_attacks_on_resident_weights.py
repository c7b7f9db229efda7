"""Images that try to change the weights which another inference will find in LV2: refused, or to no effect."""

from copy import deepcopy

import numpy as np
import pytest

from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.isa import INSN_BYTES, Insn, Op, Segment
from hw.contract.params import preset
from hw.contract.spaces import Space
from hw.image.image import Image, ImageError, JobInfo, LiveRange, Relocation
from sim.backends import DEFAULT_BACKEND, MODEL
from sim.simulators import open_simulator
from sw.driver import Device
from sw.driver.preempt.state_transfer import Restore
from sw.runtime import Mechanism, Runtime, Session
from tests.support.preempt_images import smashing_image

TINY = preset("tiny")
DIGITS = "examples/digits/digits.onnx"
STOLEN = 64  #: bytes of an input of digits, as it is stored
TENANTS = [(None, None), ("a", "a"), ("a", "b"), (None, "b")]
ARRIVALS = range(600, 9000, 1200)  #: of the victim, counted from the attacker's: it stands in each of its jobs


@pytest.fixture(scope="module")
def image():
    return compile_model(DIGITS, TINY, name="digits", options=Options(cancel_interval=300, lv2_limit="all"))


@pytest.fixture(scope="module")
def samples():
    return np.load("examples/digits/digits_samples.npz")["input"].astype(np.float32)


@pytest.fixture(params=[DEFAULT_BACKEND, MODEL])
def device(request):
    bus = open_simulator(TINY, request.param)
    yield Device(bus)
    bus.close()


def windows(image: Image) -> list[tuple[int, int]]:
    """Those that prologues fill: first byte and size."""
    return [job.window for job in image.meta.jobs if job.prologue_pc is not None]


def run(device, model, x):
    (value,) = Session(device, model).run(x)[0].values()
    return value


def attack(device, image, bad, samples, tenants):
    """``bad`` is preempted by the victim, who has the same weights, again and again, and each time comes back. Returns
    how many restores there were."""
    attacker = device.load(bad, keep_weights=True, tenant=tenants[0])
    victim = device.load(image, keep_weights=True, tenant=tenants[1])
    noise = device.load(smashing_image(TINY), tenant=tenants[0])
    expected, restores = run(device, victim, samples[:1]), 0
    for wait in ARRIVALS:
        run(device, noise, np.full((1, 8, 8), -60, np.float32))  # what a dump finds where no prologue has loaded yet
        runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
        runtime.submit(attacker, samples[1:2])
        urgent = runtime.submit(victim, samples[:1], priority=1, arrival=device.bus.cycle + wait)
        runtime.run_until_done()
        (value,) = urgent.result().values()
        np.testing.assert_array_equal(value, expected)
        restores += sum(isinstance(each, Restore) for each in device.operations)
        np.testing.assert_array_equal(run(device, victim, samples[:1]), expected, err_msg=f"behind arrival {wait}")
    return restores


def with_live(image: Image, ranges: list[LiveRange]) -> Image:
    """``ranges`` come first in what every point and every job says to have in LV2."""
    bad = deepcopy(image)
    for entry in [*bad.meta.cancel_points, *bad.meta.jobs]:
        entry.live = [*ranges, *entry.live]
    return bad


@pytest.mark.parametrize("tenants", TENANTS)
def test_a_clean_range_whose_copy_is_an_input(device, image, samples, tenants):
    stolen = [LiveRange(Space.LV2, 7, start, STOLEN, False, int(Segment.INPUTS), 0) for start, _ in windows(image)]
    assert attack(device, image, with_live(image, stolen), samples, tenants)


@pytest.mark.parametrize("tenants", TENANTS)
def test_a_dirty_range_that_holds_what_was_there_before(device, image, samples, tenants):
    before = [LiveRange(Space.LV2, 7, start, size, True) for start, size in windows(image)]
    assert attack(device, image, with_live(image, before), samples, tenants)


@pytest.mark.parametrize("tenants", TENANTS)
def test_a_reload_list_of_prologues(device, image, samples, tenants):
    """They may run again: they bring what is there."""
    bad = deepcopy(image)
    loads = [job.prologue_pc for job in bad.meta.jobs if job.prologue_pc is not None]
    for point in bad.meta.cancel_points:
        point.reload = [*loads, *point.reload]
    assert attack(device, image, bad, samples, tenants)


def load_into(image: Image, start: int) -> Insn:
    """A load of an input into byte ``start`` of segment 7."""
    fields = {"len": STOLEN, "hi": STOLEN, "hi1": 1, "hi0": 1}
    return Insn(Op.LD2, {"src_seg": int(Segment.INPUTS), "dst_seg": int(Segment.WINDOWS), "dst": start, **fields})


def append(image: Image, *insns: Insn) -> int:
    """Add code; returns its first PC."""
    pc = len(image.code) // INSN_BYTES
    image.code += b"".join(insn.encode() for insn in insns)
    image.meta.segment_sizes[0] = max(image.meta.segment_sizes[0], len(image.code))
    return pc


def a_prologue_of_a_job_without_a_window(bad: Image) -> None:
    pc = append(bad, load_into(bad, windows(bad)[0][0]), Insn(Op.END))
    bad.meta.jobs.append(JobInfo(layer=0, engine=0, body_pc=pc + 1, prologue_pc=pc))
    bad.meta.steps[-1].count += 1


def a_prologue_of_a_job_whose_window_is_elsewhere(bad: Image) -> None:
    pc = append(bad, load_into(bad, windows(bad)[0][0]), Insn(Op.END))
    bad.meta.jobs.append(JobInfo(layer=0, engine=0, body_pc=pc + 1, prologue_pc=pc, window=(0, STOLEN)))
    bad.meta.steps[-1].count += 1


def a_body(bad: Image) -> None:
    pc = append(bad, load_into(bad, windows(bad)[0][0]), Insn(Op.END))
    bad.meta.jobs.append(JobInfo(layer=0, engine=0, body_pc=pc))
    bad.meta.steps[-1].count += 1


def a_reload_that_no_program_runs(bad: Image) -> None:
    pc = append(bad, load_into(bad, windows(bad)[0][0]), Insn(Op.END))
    for point in bad.meta.cancel_points:
        point.reload = [pc, *point.reload]


def a_store_of_which_the_driver_changes_the_address(bad: Image) -> None:
    pc = append(bad, Insn(Op.ST1, {"dst_seg": 7, "len": STOLEN, "hi": STOLEN, "hi1": 1, "hi0": 1}), Insn(Op.END))
    bad.meta.relocations.append(Relocation(pc, "dst", "segment3"))


def a_prologue_of_which_the_driver_changes_the_source(bad: Image) -> None:
    pc = next(job.prologue_pc for job in bad.meta.jobs if job.prologue_pc is not None)
    bad.meta.relocations.append(Relocation(pc, "src", "segment2"))


ATTACKS = [
    a_prologue_of_a_job_without_a_window, a_prologue_of_a_job_whose_window_is_elsewhere, a_body,
    a_reload_that_no_program_runs, a_store_of_which_the_driver_changes_the_address,
    a_prologue_of_which_the_driver_changes_the_source,
]  # fmt: skip


@pytest.mark.parametrize("change", ATTACKS)
@pytest.mark.parametrize("tenants", TENANTS[:3])
def test_code_that_writes_there_is_refused(device, image, samples, change, tenants):
    victim, bad = device.load(image, keep_weights=True, tenant=tenants[1]), deepcopy(image)
    change(bad)
    expected = run(device, victim, samples[:1])
    with pytest.raises(ImageError, match="weights_only"):
        run(device, device.load(bad, keep_weights=True, tenant=tenants[0]), samples[1:2])
    np.testing.assert_array_equal(run(device, victim, samples[:1]), expected)


def test_what_was_cleared_for_another_tenant_is_not_known(device, image, samples):
    """Whoever brings weights there is of the tenant that used the bytes last. What another one is said to have brought
    is not believed, so that what is cleared is loaded again."""
    expected = run(device, device.load(image), samples[:1])
    model = device.load(image, keep_weights=True, tenant="a")
    for job in range(len(image.meta.jobs)):
        if (kept := model.kept_weights(job)) is not None:
            device.lv2.put(kept[0], "a", kept[1])
    np.testing.assert_array_equal(run(device, model, samples[:1]), expected)
