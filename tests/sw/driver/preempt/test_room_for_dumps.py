"""Room for dumps: copies that come and go in any order always find a place in it."""

import random
from types import SimpleNamespace

import pytest

from hw.contract.params import PRESETS
from hw.contract.spaces import Space
from hw.image import LiveRange
from sw.driver import Allocator, OutOfMemory, room_for_dumps
from sw.driver.preempt.suspended_tasks import COPY_ALIGN

TINY = PRESETS["tiny"]


def image(*sizes):
    """An image that has ``sizes`` dirty bytes in LV2 on so many engines."""
    jobs = [
        SimpleNamespace(engine=e, live=[LiveRange(Space.LV2, 6, 0, size, dirty=True)]) for e, size in enumerate(sizes)
    ]
    return SimpleNamespace(meta=SimpleNamespace(jobs=jobs, cancel_points=[], parts=0))


def test_nothing_dirty_needs_nothing():
    assert room_for_dumps(TINY, [image(0), image()]) == 0


def test_engines_and_images_add_up():
    one, both, two = (
        room_for_dumps(TINY, found) for found in ([image(8_000)], [image(8_000, 8_000)], [image(8_000)] * 2)
    )
    assert one < both < two  # each task has slack of its own


def come_and_go(room, most, chance):
    """Each task gives its copies back together, and takes as many as it likes up to its most."""
    dram, held = Allocator("DRAM", 0, room), dict[int, list[int]]()
    for _ in range(2_000):
        task = chance.randrange(len(most))
        if task in held:
            for address in held.pop(task):
                dram.free(address)
            continue
        held[task], left = [], most[task]
        while left >= COPY_ALIGN and chance.random() < 0.9:
            size = chance.randrange(COPY_ALIGN, left + 1)
            held[task].append(dram.allocate(size, COPY_ALIGN))
            left -= -(-size // COPY_ALIGN) * COPY_ALIGN


@pytest.mark.parametrize("seed", range(20))
def test_copies_in_any_order_find_a_place(seed):
    chance = random.Random(seed)
    most = [chance.randrange(COPY_ALIGN, 20_000) for _ in range(6)]
    come_and_go(room_for_dumps(TINY, [image(size) for size in most]), most, chance)


def test_the_live_bytes_alone_are_too_few():
    chance = random.Random(1)
    most = [chance.randrange(COPY_ALIGN, 20_000) for _ in range(6)]
    with pytest.raises(OutOfMemory):
        come_and_go(sum(most), most, chance)
