"""A step of a conversation that is suspended anywhere, all of its on-chip memories overwritten, goes on as if nothing
had been."""

import functools

import numpy as np
import pytest

from compiler import Options, compile_with_report, import_model, reference
from hw.contract.bus import HostCosts
from hw.contract.isa import Op, Segment
from hw.contract.params import preset
from hw.contract.spaces import Space
from hw.image import Image
from sw.driver import Device
from sw.runtime import Conversation
from tests.support.images import decoded
from tests.support.preempt_images import smashing_image
from tests.support.small_step import SIZE, small_step

TINY = preset("tiny")
LIMIT, ROWS, FILLED = 10_000_000, 12, 7


@functools.cache
def image() -> Image:
    options = Options(cancel_interval=50, lv2_limit="all")
    return compile_with_report(small_step(), TINY, sizes={"past": ROWS}, options=options, jobs=1).image


@functools.cache
def expected() -> tuple[np.ndarray, ...]:
    """What the step gives whose past are the values that :func:`begun` writes, by the reference."""
    past = {name: value.transpose(0, 2, 1, 3) for name, value in zip(("past_key", "past_value"), states(), strict=True)}
    feed = {"ids": np.array([[3]]), "position": np.array([[FILLED]]), "past": FILLED}
    graph = import_model(small_step(), sizes={"past": ROWS})
    scales = {port.name: graph.tensors[port.tensor].scale for port in graph.inputs if port.name in past}
    real = {name: value[:, :, :ROWS] * np.float32(scales[name]) for name, value in past.items()}
    made = reference.run(graph, {**feed, **real})
    return made["y"], made["key"][:, :, : FILLED + 1], made["value"][:, :, : FILLED + 1]


def states() -> list[np.ndarray]:
    """Rows of keys and of values, int8, also those that are not filled."""
    rng = np.random.default_rng(4)
    return [rng.integers(-100, 101, (1, ROWS + 1, 2, SIZE), np.int8) for _ in range(2)]


def begun(device: Device) -> Conversation:
    """A conversation with rows in its memory, of which so many count."""
    session = Conversation(device, device.load(image()))
    names = [port.tensor for port in image().meta.outputs if port.name in ("key", "value")]
    for name, value in zip(names, states(), strict=True):
        device.bus.write_mem(session.state + session.model.image.tensor(name).offset, value.tobytes())
    session.filled = FILLED
    session.store({"ids": 3})
    device.begin(session.model, LIMIT, session.numbers)
    return session


PHASES = 24


@pytest.mark.parametrize("phase", range(PHASES))
def test_wherever_it_is_suspended(soc, phase):
    device = Device(soc(TINY, costs=HostCosts.free()))
    session, urgent = begun(device), device.load(smashing_image(TINY, engines=TINY.engines))
    jobs = device.submit(session.model, range(len(image().meta.jobs)), limit=LIMIT)
    device.bus.advance(1 + 350 * phase)
    suspension = device.suspend(range(TINY.engines), urgent, verify=True)
    device.admit(urgent)
    urgent.write_tensor("x", np.ones((1, 8, 8), np.int8))
    device.begin(urgent, LIMIT)
    device.collect(device.submit(urgent, range(len(urgent.image.meta.jobs)), limit=LIMIT), LIMIT)
    device.resume(suspension)
    device.collect(jobs, LIMIT)
    outputs = session.fetch()
    np.testing.assert_array_equal(outputs["y"], expected()[0])
    held = {port.name: port.tensor for port in image().meta.outputs}
    for name, wanted in zip(("key", "value"), expected()[1:], strict=True):
        info = image().tensor(held[name])
        found = np.frombuffer(device.bus.read_mem(session.state + info.offset, np.prod(info.shape)), np.int8)
        rows = found.reshape(1, ROWS + 1, 2, SIZE)[:, : FILLED + 1].transpose(0, 2, 1, 3)
        np.testing.assert_array_equal(rows * np.float32(info.scale), wanted)


def test_the_copy_on_chip_is_dumped_only_while_a_row_is_added():
    """From the store to LV2 until that to DRAM they differ."""
    code = decoded(image().code)
    sizes = {int(np.prod(image().tensor(port.tensor).shape)) for port in image().meta.outputs if port.name != "y"}
    points = {point.pc: point for point in image().meta.cancel_points}
    seen = {True: 0, False: 0}
    place = next(i for i, info in enumerate(image().meta.parameters) if info.name == "past" and info.mul > 1)
    for job in image().meta.jobs:
        added = ("dst", job.parameters.index(place)) if place in job.parameters else None
        pc, differs, first = job.body_pc, False, dict[int, int]()
        while code[pc].op is not Op.END:
            if code[pc].op in (Op.ST1, Op.ST2) and added in code[pc].added:
                differs = code[pc].op is Op.ST1
            for live in points[pc].live if pc in points else ():
                if live.space == Space.LV2 and live.segment == Segment.LV2 and live.size in sizes:
                    first.setdefault(live.offset, len(first))
                    seen[live.dirty] += 1
                    assert differs or not live.dirty, f"PC {pc}"
                    assert live.dirty or live.source_segment == Segment.SCRATCH
            if differs and pc in points:
                assert any(live.dirty and live.size in sizes for live in points[pc].live), f"PC {pc}"
            pc += 1
    assert min(seen.values()) > 0
