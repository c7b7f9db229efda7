from itertools import pairwise

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import Insn
from hw.contract.job import Fault
from hw.contract.params import preset
from hw.image.image import ImageError, Relocation
from sw.driver import Device, DeviceFault, DeviceMismatch, DeviceTimeout, DriverError, OutOfMemory
from sw.driver.memory.placement import relocate
from tests.support.fake_soc import FakeSoc
from tests.support.images import SIZE, copy_image

TINY, BASE = preset("tiny"), preset("base")
LIMIT = 1_000_000


def run(device, model):
    device.begin(model, LIMIT)
    ids = device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)
    return device.collect(ids, LIMIT)


def check_copy(device, model, seed=0):
    data = np.random.default_rng(seed).integers(-128, 128, (1, 8, 8)).astype(np.int8)
    model.write_tensor("x", data)
    results = run(device, model)
    np.testing.assert_array_equal(model.read_tensor("y"), data)
    return results


# -- identification ------------------------------------------------------------------------------------------
def test_hardware_of_other_parameters_is_refused(soc):
    soc = soc(TINY)
    soc.params = TINY.replace(events=16)
    with pytest.raises(DeviceMismatch, match="register PARAMS reads"):
        Device(soc)


@pytest.mark.parametrize("name", ["ID", "VERSION", "ENGINES"])
def test_other_hardware_is_refused(name):
    soc = FakeSoc(TINY)
    soc._regs[name] += 1
    with pytest.raises(DeviceMismatch, match=name):
        Device(soc)


# -- loading -------------------------------------------------------------------------------------------------
def test_load_writes_code_and_unload_gives_everything_back(soc):
    device = Device(soc(TINY))
    before = device.dram.free_bytes, device.lv2.free_bytes
    model = device.load(copy_image(TINY))
    base, size = model.segments[0]
    assert device.bus.read_mem(base, size) == model.image.code
    device.unload(model)
    assert (device.dram.free_bytes, device.lv2.free_bytes) == before
    with pytest.raises(DriverError, match="not loaded"):
        device.unload(model)


def test_image_for_other_parameters_is_refused(soc):
    with pytest.raises(ImageError, match="compile it for this device"):
        Device(soc(TINY)).load(copy_image(BASE))


def test_image_that_does_not_fit_leaves_nothing_allocated(soc):
    device = Device(soc(TINY))
    image = copy_image(TINY)
    image.meta.segment_sizes[4] = TINY.dram_bytes
    before = device.dram.free_bytes
    with pytest.raises(OutOfMemory, match=r"scratch of model 'copy': \d+ bytes left"):
        device.load(image)
    assert device.dram.free_bytes == before


def test_an_overlaid_image_has_one_block_of_lv2(soc):
    device = Device(soc(TINY))
    image = copy_image(TINY)
    image.meta.segment_sizes[6:], image.meta.overlaid = [SIZE, TINY.lv2_bytes // 2], True
    assert image.meta.lv2_bytes == TINY.lv2_bytes // 2
    models = [device.load(image) for _ in range(2)]
    assert device.lv2.free_bytes == 0 and not models[0].overlaps(models[1])
    for number, model in enumerate(models):
        base = number * TINY.lv2_bytes // 2
        assert model.segments[6:] == [(base, SIZE), (base, TINY.lv2_bytes // 2)]
        assert model.windows() == [(base, base + TINY.lv2_bytes // 2)]
        check_copy(device, model)
    models[1].move_windows(0, 4 * SIZE)
    assert models[1].segments[6:] == [(4 * SIZE, SIZE), (4 * SIZE, TINY.lv2_bytes // 2)]
    check_copy(device, models[1])


def test_too_many_events_leave_nothing_allocated(soc):
    device = Device(soc(TINY))
    image = copy_image(TINY)
    image.meta.events = 33
    before = device.dram.free_bytes, device.lv2.free_bytes
    with pytest.raises(DriverError, match="needs 33 hardware events"):
        device.load(image)
    assert (device.dram.free_bytes, device.lv2.free_bytes) == before


def test_models_that_share_lv2_take_turns_and_unload_cleanly(soc):
    device = Device(soc(TINY))
    large = [copy_image(TINY, name=f"m{i}") for i in range(2)]
    for image in large:
        image.meta.segment_sizes[6] = TINY.lv2_bytes
    first, second = (device.load(image) for image in large)
    assert first.overlaps(second)
    first.write_tensor("x", np.zeros((1, 8, 8), np.int8))
    device.begin(first, LIMIT)
    device.submit(first, [0], limit=LIMIT)
    assert device.engines[0].outstanding == 1
    device.begin(second, LIMIT)
    assert device.engines[0].outstanding == 0
    device.unload(second)
    assert device.lv2.free_bytes == 0
    device.unload(first)
    assert device.lv2.free_bytes == TINY.lv2_bytes


def test_relocation_adds_the_base_of_a_segment():
    image = copy_image(TINY)
    image.meta.relocations = [Relocation(pc=1, field="dst", symbol="segment3")]
    segments = [(0x1000 * i, 0) for i in range(8)]
    assert Insn.decode(relocate(image, segments)[64:128])["dst"] == 0x3000
    image.meta.relocations[0].symbol = "nowhere"
    with pytest.raises(ImageError, match="unknown symbol 'nowhere'"):
        relocate(image, segments)


# -- jobs ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_jobs_on_several_engines_keep_their_order_by_events(soc, seed):
    device = Device(soc(BASE, seed=seed))
    model = device.load(copy_image(BASE, engines=4))
    for turn in range(3):
        results = check_copy(device, model, seed=turn)
        assert [r.engine for r in results] == [0, 1, 0, 1]
        assert all(a.end <= b.start for a, b in pairwise(results))


@pytest.mark.parametrize("ring_log2", [0, 1, 2])
def test_more_jobs_than_the_ring_holds(soc, ring_log2):
    device = Device(soc(TINY), ring_log2=ring_log2)
    model = device.load(copy_image(TINY, engines=13))
    for turn in range(2):
        assert len(check_copy(device, model, seed=turn)) == 13
    assert device.engines[0].outstanding == 0


def test_free_costs_spend_accelerator_cycles_only():
    device = Device(FakeSoc(TINY, costs=HostCosts.free()))
    model = device.load(copy_image(TINY))
    (result,) = check_copy(device, model)
    assert device.bus.cycle == result.end == 300
    assert device.cycle_count() == 300


def test_unload_with_outstanding_jobs_is_refused(soc):
    device = Device(soc(TINY))
    model = device.load(copy_image(TINY))
    device.begin(model, LIMIT)
    device.submit(model, [0], limit=LIMIT)
    with pytest.raises(DriverError, match="jobs outstanding"):
        device.unload(model)


def test_wrong_tensor_is_refused(soc):
    model = Device(soc(TINY)).load(copy_image(TINY))
    with pytest.raises(DriverError, match=r"tensor 'x' of model 'copy' is int8\[1, 8, 8\], not uint8\[64\]"):
        model.write_tensor("x", np.zeros(SIZE, np.uint8))


# -- faults --------------------------------------------------------------------------------------------------
BEYOND = f"LD2 src_seg=2 dst_seg=6 src=32 len={SIZE} hi={SIZE} hi1=1 hi0=1\nEND"
RESIDUE = f"LD2 src_seg=2 dst_seg=6 len={SIZE} hi={SIZE} hi1=1 hi0=1 signal=4\nEND"


@pytest.mark.parametrize("fault_completion", [True, False])
def test_fault_names_job_layer_unit_pc_address_and_instruction(fault_completion):
    device = Device(FakeSoc(TINY, fault_completion=fault_completion))
    bad, good = device.load(copy_image(TINY, BEYOND, name="bad")), device.load(copy_image(TINY))
    with pytest.raises(DeviceFault) as caught:
        run(device, bad)
    record = caught.value.record
    assert (record.engine, record.code, record.unit, record.pc, record.address) == (0, Fault.LIMIT, "LD2", 0, SIZE)
    assert "LIMIT fault in job 0 of 'bad' (layer 'first')" in str(caught.value)
    assert "LD2 src_seg=2 dst_seg=6 src=0x20" in str(caught.value)
    device.abort(bad)
    assert device.bus.resets == [0]
    check_copy(device, good)


def test_fault_of_one_model_leaves_the_other_engine_running(soc):
    device = Device(soc(BASE))
    bad = device.load(copy_image(BASE, RESIDUE, name="bad"))
    good = copy_image(BASE)
    good.meta.jobs[0].engine = 1
    good = device.load(good)
    with pytest.raises(DeviceFault, match="SEMAPHORE_RESIDUE"):
        run(device, bad)
    check_copy(device, good)
    device.abort(bad)
    assert device.bus.resets == [0]


def test_cycle_limit_is_passed_on():
    device = Device(FakeSoc(TINY))
    model = device.load(copy_image(TINY))
    device.begin(model, LIMIT)
    ids = device.submit(model, [0], limit=LIMIT, cycle_limit=299)
    with pytest.raises(DeviceFault, match="CYCLE_LIMIT"):
        device.collect(ids, LIMIT)


def test_timeout_says_what_each_engine_was_doing():
    soc = FakeSoc(BASE)
    device = Device(soc)
    model = device.load(copy_image(BASE, engines=2))
    soc.hang = True
    soc._regs["E0.STATUS"], soc._regs["E0.SEM[7]"], soc._regs["E0.CURRENT_JOB"] = 2, 3, 1
    with pytest.raises(DeviceTimeout) as caught:
        run(device, model)
    lines = str(caught.value).splitlines()
    assert f"within {LIMIT} cycles" in lines[0]
    assert "engine 0: RUNNING, job id 1, PC 0, 1 jobs outstanding, semaphores 7:3" in lines[1]
    assert "job 0 of 'copy'" in lines[1]
    assert "engine 1: DISABLED" in lines[2] and "all zero" in lines[2]
    soc.hang = False
    device.abort(model)
    assert soc.resets == [0, 1]
    check_copy(device, model)


def test_reset_that_never_ends_is_reported():
    soc = FakeSoc(TINY)
    device = Device(soc)
    soc._reset = lambda e: soc._regs.__setitem__("E0.STATUS", 6)
    with pytest.raises(DriverError, match="did not come out of reset"):
        device.queues.reset(0)


def test_bytes_of_a_job_are_its_traffic(soc):
    device = Device(soc(TINY))
    (result,) = check_copy(device, device.load(copy_image(TINY)))
    traffic = result.traffic
    assert (traffic.ahead.bytes, traffic.loads.bytes, traffic.stores.bytes) == (0, SIZE, SIZE)
    assert traffic.total.bytes == 2 * SIZE


def test_counters_by_name():
    soc = FakeSoc(TINY)
    soc._regs["E0.COUNTER[0]"] = 77
    assert Device(soc).counters(0)["prologue_bytes"] == 77


def test_equal_weights_are_shared_if_wanted(soc):
    device, free = Device(soc(TINY)), []
    images = [copy_image(TINY, name=name) for name in ("a", "b", "c")]
    for image, weights in zip(images, (b"w" * 100, b"w" * 100, b"v" * 100), strict=True):
        image.weights, image.meta.segment_sizes[1] = weights, 100
    first = device.load(images[0])
    free.append(device.dram.free_bytes)
    second = device.load(images[1], like=[first])
    third = device.load(images[2], like=[first, second])
    fourth = device.load(images[1])
    assert first.segments[1] == second.segments[1]
    assert len({model.segments[1][0] for model in (first, third, fourth)}) == 3
    for model in (third, fourth, first):
        device.unload(model)
    check_copy(device, second)
    assert device.bus.read_mem(second.segments[1][0], 100) == b"w" * 100
    fifth = device.load(images[0], like=[first, second])  # the first is not loaded any more
    assert fifth.segments[1] == second.segments[1]
    device.unload(second)
    device.unload(fifth)
    assert device.dram.free_bytes > free[0]
