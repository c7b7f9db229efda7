import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from hw.image.image import ImageError
from sim.model.bus import ModelBus
from sw.driver import Device, DeviceFault, DeviceTimeout
from sw.runtime import InputError, Session
from tests.support.images import COPY_CYCLES, SIZE, copy_image, negating_image

TINY, BASE = preset("tiny"), preset("base")
FIVE = np.full((1, 8, 8), 5, np.float32)


def session(image=None, params=TINY, **options):
    device = Device(ModelBus(params))
    return Session(device, device.load(image or copy_image(params)), **options)


def test_outputs_are_the_dequantised_inputs():
    x = np.random.default_rng(1).uniform(-100, 100, (1, 8, 8)).astype(np.float32)
    outputs, stats = session().run(x)
    quantised = np.clip(np.rint(x / np.float32(0.5)) + 3, -128, 127)
    np.testing.assert_array_equal(outputs["out"], ((quantised - 3) * np.float32(0.5)).reshape(1, 64))
    assert outputs["out"].dtype == np.float32
    assert stats.cycles == COPY_CYCLES < stats.latency


def test_statistics_per_layer():
    device = Device(ModelBus(BASE, costs=HostCosts.free()))
    run = Session(device, device.load(copy_image(BASE, engines=3)))
    _, stats = run.run({"in": np.zeros((1, 8, 8), np.float32)})
    first, second = stats.layers
    alone, *two = stats.jobs
    assert (first.cycles, first.engines, first.macs) == (alone.end - alone.start, (0,), 1000)
    assert first.utilisation == 1000 / (256 * first.cycles)
    assert (second.cycles, second.engines) == (two[1].end - two[0].start, (0, 1))
    assert stats.utilisation == 1000 / (512 * stats.cycles)
    assert (first.cycles, second.cycles, stats.cycles, len(two)) == (328, 413, 858, 2)


@pytest.mark.parametrize(
    "value, message",
    [
        (np.zeros((1, 8, 9), np.float32), r"input 'in': shape \[1, 8, 9\], expected \[1, 8, 8\]"),
        (np.zeros((1, 8, 8)), "input 'in': dtype float64, expected float32"),
        ({}, "input 'in' is missing; model 'copy' takes 'in'"),
        ({"in": 0, "extra": 0}, "input 'extra' does not exist"),
    ],
)
def test_wrong_inputs_are_named(value, message):
    with pytest.raises(InputError, match=message):
        session().run(value)


def test_host_step_runs_on_the_cpu_and_takes_time():
    for_nothing = session(copy_image(TINY)).run(FIVE)[1]
    device = Device(ModelBus(TINY))
    outputs, stats = Session(device, device.load(negating_image(TINY))).run(FIVE)
    assert set(outputs["out"].ravel()) == {np.float32((-13 - 3) * 0.5)}
    step = 1000 + 64 * 1 + 2 * 1 * 10  # a call, 64 elements, two tensors of one cache line
    assert stats.host == step and stats.cycles == for_nothing.cycles
    assert stats.latency == for_nothing.latency + step


def test_host_step_can_be_free():
    device = Device(ModelBus(TINY, costs=HostCosts.free()))
    assert Session(device, device.load(negating_image(TINY))).run(FIVE)[1].host == 0


def test_damaged_host_model_is_refused():
    image = copy_image(TINY)
    image.host_models, image.meta.host_sizes = [b"junk"], [4]
    with pytest.raises(ImageError, match="host model 0: it is not an ONNX model"):
        session(image)


def test_session_runs_again_after_a_fault():
    run = session(copy_image(TINY, f"LD2 src_seg=2 dst_seg=6 src=1 len={SIZE} hi={SIZE} hi1=1 hi0=1\nEND"))
    for _ in range(2):
        with pytest.raises(DeviceFault, match="LIMIT"):
            run.run(np.zeros((1, 8, 8), np.float32))
    other = Session(run.device, run.device.load(copy_image(TINY)))
    other.run(np.zeros((1, 8, 8), np.float32))


def test_session_runs_again_after_a_timeout():
    run = session(limit=1000)
    run.device.bus.set_dram_timing(TINY.replace(dram_latency=50_000))
    with pytest.raises(DeviceTimeout, match="within 1000 cycles"):
        run.run(FIVE)
    run.device.bus.set_dram_timing(TINY)
    np.testing.assert_array_equal(run.run(FIVE)[0]["out"], FIVE.reshape(1, 64))
