"""How full LV2 is: what models reserve, and what of it holds data while their jobs are queued."""

from hw.contract.params import preset
from sw.driver import Device
from tests.support.fake_soc import FakeSoc
from tests.support.images import SIZE
from tests.support.preempt_images import WEIGHT, walking_image

TINY = preset("tiny")
LIMIT = 10_000_000
WINDOWS = (4096, 1024)


def begun(device, model, jobs):
    device.begin(model, LIMIT)
    return device.submit(model, jobs, limit=LIMIT)


def test_reserved_is_what_loaded_models_have(soc):
    device = Device(soc(TINY))
    assert (device.lv2_use().reserved, device.lv2_use().free) == (0, TINY.lv2_bytes)
    models = [device.load(walking_image(TINY, name=f"m{i}", windows=WINDOWS)) for i in range(2)]
    use = device.lv2_use()
    assert [part.model for part in use.models] == models
    assert [part.reserved for part in use.models] == [sum(WINDOWS)] * 2
    assert (use.reserved, use.held) == (2 * sum(WINDOWS), 0)
    device.unload(models[0])
    assert device.lv2_use().free == TINY.lv2_bytes - sum(WINDOWS)


def test_models_that_take_turns_count_once(soc):
    device = Device(soc(TINY))
    halves = (TINY.lv2_bytes // 2, TINY.lv2_bytes // 2)
    for i in range(2):
        device.load(walking_image(TINY, name=f"m{i}", windows=halves))
    assert (device.lv2_use().reserved, device.lv2_use().free) == (TINY.lv2_bytes, 0)


def test_held_rises_with_prefetched_weights_and_falls_as_jobs_end():
    """Each job has a window of weights, and all but the first find the copied tensor in LV2."""
    device = Device(FakeSoc(TINY))
    model = device.load(walking_image(TINY, jobs=3, windows=WINDOWS))
    ids = begun(device, model, [0, 1, 2])
    assert device.lv2_use().held == 0  # nothing has been loaded yet
    device.bus.step()  # prologues run ahead, the first body begins
    assert device.lv2_use().held == 3 * WEIGHT
    device.collect(ids[:1], LIMIT)
    left = len(device.outstanding)
    assert left < 3
    assert device.lv2_use().held == (SIZE + left * WEIGHT if left else 0)
    device.collect(ids[1:], LIMIT)
    assert device.lv2_use().held == 0
