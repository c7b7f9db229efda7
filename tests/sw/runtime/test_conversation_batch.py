"""Batches: conversations that share steps, join and leave between them, alone and as requests of a run time."""

import asyncio
import functools

import numpy as np
import pytest

import caesura
from compiler import Options, compile_with_report
from hw.contract.isa import Segment
from hw.contract.params import preset
from hw.image import Image
from sw.driver import DriverError
from sw.runtime import InputError, Mechanism, Runtime
from sw.runtime.request import RequestCancelled
from tests.support.model_soc import ModelBus
from tests.support.small_step import WIDTH, small_step
from tests.support.step_reference import steps_of

TINY = preset("tiny")
ROWS, PLACES = 7, 3
TEXTS = [[int(token) for token in np.random.default_rng(seed).integers(0, 40, ROWS + 1)] for seed in range(5)]


def compiled(model, sequences):
    """In the order of the model: the search for another takes half a minute."""
    how = {"options": Options(order="source"), "jobs": 1}
    return compile_with_report(model, TINY, sizes={"past": ROWS}, sequences=sequences, **how).image


@functools.cache
def image(sequences: int = PLACES) -> Image:
    return compiled(small_step(), sequences)


@functools.cache
def expected(text: int) -> list[np.ndarray]:
    return steps_of(TEXTS[text], ROWS)


def equal(outputs, text: int, at: int) -> None:
    assert outputs.keys() == {"y"}
    np.testing.assert_array_equal(outputs["y"], expected(text)[at])


@pytest.fixture
def device():
    with caesura.Device(ModelBus(TINY)) as opened:
        yield opened


@pytest.fixture
def batch(device):
    return device.load(image()).batch()


def test_conversations_share_steps_until_their_states_are_full(batch):
    members = [batch.join() for _ in range(PLACES)]
    for at in range(ROWS + 1):
        outputs, stats = batch.step({member: TEXTS[text][at] for text, member in enumerate(members)})
        assert stats.cycles > 0
        for text, member in enumerate(members):
            equal(outputs[member], text, at)
    with pytest.raises(InputError, match=r"8 steps fill its state; compile it for a longer one"):
        batch.step({members[1]: 3})


def test_they_join_and_leave_between_steps(batch):
    """And some have nothing to say; five texts share three places."""
    rng, waiting, going, ended = np.random.default_rng(8), list(range(len(TEXTS))), {}, 0
    while waiting or going:
        while waiting and len(going) < PLACES:
            going[batch.join()] = waiting.pop()
        active = [member for member in going if rng.random() < 0.7]
        if not active:
            continue
        before = {member: member.filled for member in active}
        outputs, _ = batch.step({member: TEXTS[going[member]][member.filled] for member in active})
        for member in active:
            equal(outputs[member], going[member], before[member])
            if member.filled == len(TEXTS[going[member]]):
                member.close()
                del going[member]
                ended += 1
    assert ended == len(TEXTS)


def test_one_may_go_on_alone_while_another_is_full(batch):
    full, other = batch.join(), batch.join()
    full.step(TEXTS[0])
    assert full.filled == ROWS + 1
    for at, token in enumerate(TEXTS[1]):
        equal(other.step({"ids": token})[0], 1, at)


def test_the_error_of_a_step_is_told_and_changes_nothing(batch):
    first, second = batch.join(), batch.join()
    for at in range(3):
        for bad, message in (({"ids": 40}, "'ids' is 40; it must be 0 to 39"), ({"x": 1}, "input 'ids' is missing")):
            with pytest.raises(InputError, match=message):
                batch.step({first: TEXTS[0][at], second: bad})
        with pytest.raises(InputError, match=r"input 'x' does not exist; a step of model .* takes 'ids', 'position'"):
            first.step({"ids": 1, "x": 1})
        outputs, _ = batch.step({first: TEXTS[0][at], second: TEXTS[1][at]})
        equal(outputs[first], 0, at)
        equal(outputs[second], 1, at)


def test_places_are_limited_and_given_back(device, batch):
    members = [batch.join() for _ in range(PLACES)]
    with pytest.raises(DriverError, match=r"all 3 places .* are taken"):
        batch.join()
    members[0].step(5)
    members[1].step(TEXTS[1][:2])
    state, size = batch.state, batch.model.segments[Segment.SCRATCH][1]
    members[1].close()
    members[1].close()
    with pytest.raises(DriverError, match="was closed, or is one of another batch"):
        members[1].step(1)
    again = batch.join()
    for at in range(3):
        equal(again.step(TEXTS[2][at])[0], 2, at)
    batch.close()
    batch.close()
    assert not any(device.bus.read_mem(state, size))
    with pytest.raises(DriverError, match="was closed"):
        batch.join()
    with pytest.raises(DriverError, match="was closed"):
        again.step(1)


def test_what_a_conversation_leaves_is_cleared(device, batch):
    """The states of others stay."""
    first, second = batch.join(), batch.join()
    batch.step({first: 3, second: 4})
    size = batch.model.segments[Segment.SCRATCH][1]
    before = device.bus.read_mem(batch.state, size)
    second.close()
    after = device.bus.read_mem(batch.state, size)
    changed = [at for at in range(size) if before[at] != after[at]]
    kept = [at for at in range(size) if after[at]]
    assert changed and kept and not any(after[at] for at in changed)


def test_batches_of_one_model_take_turns(device):
    model = device.load(image())
    batches = [model.batch() for _ in range(2)]
    members = [batch.join() for batch in batches]
    for at in range(ROWS + 1):
        for text, member in enumerate(members):
            equal(member.step(TEXTS[text][at])[0], text, at)


def test_a_model_of_one_sequence_has_no_batch(device):
    with pytest.raises(InputError, match="not for several sequences: compile it with sequences=2"):
        device.load(image(1)).batch()


def test_inputs_that_are_arrays_have_a_row_for_each(device):
    """A model that is given embedded tokens, float, instead of their numbers."""
    model, rng = small_step(embedded=True), np.random.default_rng(4)
    images = [compiled(model, n) for n in (1, PLACES)]
    batch, members = device.load(images[1]).batch(), []
    alone = [device.load(images[0]).session() for _ in range(2)]
    members = [batch.join() for _ in range(PLACES)][1:]
    for _ in range(3):
        feeds = [{"x": rng.normal(0, 1, (1, 1, WIDTH)).astype(np.float32)} for _ in members]
        outputs, _ = batch.step(dict(zip(members, feeds, strict=True)))
        for session, member, feed in zip(alone, members, feeds, strict=True):
            np.testing.assert_array_equal(outputs[member]["y"], session.step(feed)[0]["y"])
    with pytest.raises(InputError, match=r"input 'x': shape \[3, 1, 64\], expected \[1, 1, 64\]"):
        members[0].step({"x": np.zeros((PLACES, 1, WIDTH), np.float32)})


def test_steps_that_are_ready_share_a_request(device, batch):
    """An urgent conversation suspends them at points of each of their requests."""
    urgent = device.load(image(1)).session()
    members = [batch.join() for _ in range(PLACES)]
    with Runtime(device, preemptive=True, rule=lambda _: Mechanism.DUMP) as runtime:
        for at in range(ROWS + 1):
            steps = [runtime.submit_step(member, TEXTS[text][at]) for text, member in enumerate(members)]
            assert len({step.request.number for step in steps}) == 1
            short = runtime.submit(urgent, TEXTS[4][at], priority=1, arrival=device.bus.cycle + 150 * (1 + at))
            for text, step in enumerate(steps):
                equal(step.result(), text, at)
            np.testing.assert_array_equal(short.result()["y"], expected(4)[at])
        assert runtime.switches >= ROWS // 2


def test_steps_that_are_asked_for_otherwise_have_requests_of_their_own(device, batch):
    first, second, third = (batch.join() for _ in range(PLACES))
    with Runtime(device) as runtime:
        steps = [
            runtime.submit_step(first, TEXTS[0][0]),
            runtime.submit_step(second, TEXTS[1][0], priority=1),
            runtime.submit_step(third, TEXTS[2][0], arrival=device.bus.cycle + 1_000_000),
        ]
        assert len({step.request.number for step in steps}) == PLACES
        for text, step in enumerate(steps):
            equal(step.result(), text, 0)


def test_steps_with_soft_deadlines_share_the_earliest(device, batch):
    """A hard deadline is of one request, so only steps with an equal one share it. Tags are those of all steps."""
    first, second, third = (batch.join() for _ in range(PLACES))
    late, now = 10_000_000, device.bus.cycle
    with Runtime(device) as runtime:
        steps = [
            runtime.submit_step(member, 3, deadline=deadline, soft_deadline=True, tag=tag)
            for member, deadline, tag in ((first, None, "a"), (second, now + late, "b"), (third, now + 9, "c"))
        ]
        assert len({step.request.number for step in steps}) == 1
        assert (steps[0].request.deadline, steps[0].request.tag) == (now + 9, ["a", "b", "c"])
        assert steps[1].cancel() and steps[0].request.tag == ["a", "c"]
        assert [step.result().keys() for step in steps[::2]] == [{"y"}] * 2
        hard = [
            runtime.submit_step(member, 3, deadline=at + late) for member, at in ((first, 5), (second, 6), (third, 5))
        ]
        assert hard[0].request is not hard[1].request
        for step in hard:
            step.result()


def test_a_conversation_has_one_step_at_a_time(device, batch):
    first, second = batch.join(), batch.join()
    with Runtime(device) as runtime:
        step = runtime.submit_step(first, TEXTS[0][0])
        with pytest.raises(DriverError, match="has a step that has not ended"):
            runtime.submit_step(first, TEXTS[0][1])
        with pytest.raises(DriverError, match="has a step that has not ended: wait for it"):
            first.close()
        with pytest.raises(InputError, match="'ids' is 77"):
            runtime.submit_step(second, 77)
        equal(step.result(), 0, 0)
        assert step.done() and step.exception() is None
        equal(runtime.submit_step(first, TEXTS[0][1]).result(), 0, 1)


def test_a_step_that_is_cancelled_leaves_the_others_alone(device, batch):
    first, second = batch.join(), batch.join()
    with Runtime(device) as runtime:
        steps = [runtime.submit_step(member, TEXTS[text][0]) for text, member in enumerate((first, second))]
        assert steps[0].cancel() and steps[0].done() and not steps[0].cancel()
        with pytest.raises(RequestCancelled):
            steps[0].result()
        equal(steps[1].result(), 1, 0)
        equal(runtime.submit_step(first, TEXTS[0][0]).result(), 0, 0)
        alone = runtime.submit_step(first, TEXTS[0][1])
        assert alone.cancel()
        with pytest.raises(RequestCancelled):
            alone.result()
    assert (first.filled, second.filled) == (1, 1)


def test_tasks_that_await_their_steps_share_them(device, batch):
    """Each goes on as soon as its token is there; one has a shorter text."""
    shared = list[int]()

    async def talk(runtime, text: int, length: int) -> None:
        with batch.join() as member:
            for at in range(length):
                step = runtime.submit_step(member, TEXTS[text][at])
                equal(await step, text, at)
                shared.append(len(step.request.inputs))

    async def everybody(runtime) -> None:
        await asyncio.gather(*(talk(runtime, text, length) for text, length in enumerate((ROWS, ROWS, 4))))

    with Runtime(device) as runtime:
        asyncio.run(everybody(runtime))
    assert shared.count(PLACES) == 4 * PLACES and shared.count(2) == 2 * (ROWS - 4)
