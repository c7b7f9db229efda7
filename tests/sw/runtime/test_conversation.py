"""Conversations: a model's state in device memory, step by step, in turns, preempted, beside others."""

import functools

import numpy as np
import pytest

import caesura
from compiler import compile_with_report, import_model, reference
from hw.contract.isa import Segment
from hw.contract.params import preset
from hw.image import Image
from sw.driver import DriverError
from sw.runtime import InputError, Mechanism, Runtime
from tests.support.model_soc import ModelBus
from tests.support.small_step import SIZE, small_step
from tests.support.step_reference import steps_of

TINY = preset("tiny")
ROWS, KEY_HEADS = 12, 2


@functools.cache
def image() -> Image:
    return compile_with_report(small_step(), TINY, sizes={"past": ROWS}, jobs=1).image


def expected(tokens: list[int]) -> list[np.ndarray]:
    """What the steps of a conversation give, by the reference."""
    return steps_of(tokens, ROWS)


@pytest.fixture
def device():
    with caesura.Device(ModelBus(TINY)) as opened:
        yield opened


TOKENS = [int(token) for token in np.random.default_rng(5).integers(0, 40, ROWS + 1)]


def test_steps_equal_the_reference_until_the_state_is_full(device):
    with device.load(image()).session() as session:
        for token, wanted in zip(TOKENS, expected(TOKENS), strict=True):
            outputs, _ = session.step({"ids": token})
            np.testing.assert_array_equal(outputs["y"], wanted)
            assert outputs.keys() == {"y"}
        with pytest.raises(InputError, match="13 steps fill its state; compile it for a longer one"):
            session.step(0)


def test_a_prompt_is_as_many_steps(device):
    session = device.load(image()).session()
    np.testing.assert_array_equal(session.step(TOKENS[:7])[0]["y"], expected(TOKENS)[6])
    np.testing.assert_array_equal(session.step(np.array(TOKENS[7:9]))[0]["y"], expected(TOKENS)[8])
    np.testing.assert_array_equal(session.step(np.array([[TOKENS[9]]]))[0]["y"], expected(TOKENS)[9])
    with pytest.raises(InputError, match="'ids' is 99"):
        session.step([TOKENS[10], 99, TOKENS[11]])
    assert session.filled == 11


def test_what_lies_in_rows_that_are_not_filled_does_not_matter(device):
    session = device.load(image()).session()
    size = session.model.segments[Segment.SCRATCH][1]
    device.bus.write_mem(session.state, np.random.default_rng(1).bytes(size))
    for token, wanted in zip(TOKENS, expected(TOKENS), strict=True):
        np.testing.assert_array_equal(session.step(token)[0]["y"], wanted)


def test_conversations_of_one_model_take_turns(device):
    model, others = device.load(image()), [TOKENS[::-1], TOKENS[3:] + TOKENS[:3], TOKENS]
    sessions = [model.session() for _ in others]
    results = [expected(tokens) for tokens in others]
    for at in range(len(TOKENS)):
        for session, tokens, wanted in zip(sessions, others, results, strict=True):
            np.testing.assert_array_equal(session.step(tokens[at])[0]["y"], wanted[at])


def test_plain_inferences_in_between_leave_conversations_alone(device):
    model, wanted = device.load(image()), expected(TOKENS)
    session = model.session()
    rng = np.random.default_rng(0)
    past = {
        name: rng.normal(0, 1, (1, KEY_HEADS, ROWS, SIZE)).astype(np.float32) for name in ("past_key", "past_value")
    }
    feed = {"ids": np.array([[1]]), "position": np.array([[ROWS]]), **past}
    alone = reference.run(import_model(small_step(), sizes={"past": ROWS}), feed)
    for token, result in zip(TOKENS[:4], wanted, strict=False):
        np.testing.assert_array_equal(session.step(token)[0]["y"], result)
        for name, value in model(feed).items():
            np.testing.assert_array_equal(value, alone[name])


def test_a_step_that_is_refused_leaves_the_state_as_it_was(device):
    session = device.load(image()).session()
    for token, wanted in zip(TOKENS[:5], expected(TOKENS), strict=False):
        with pytest.raises(InputError, match="'ids' is 40; it must be 0 to 39"):
            session.step({"ids": 40})
        with pytest.raises(InputError, match=r"input 'i[ds]+x?' (does not exist|is missing)"):
            session.step({"idx": 1})
        np.testing.assert_array_equal(session.step({"ids": token})[0]["y"], wanted)


def test_a_conversation_that_ends_leaves_nothing_behind(device):
    model = device.load(image())
    free, session = device.driver.dram.free_bytes, model.session()
    session.step(3)
    base, size = session.state, session.model.segments[Segment.SCRATCH][1]
    assert any(device.bus.read_mem(base, size))
    session.close()
    assert device.driver.dram.free_bytes == free and not any(device.bus.read_mem(base, size))
    with pytest.raises(DriverError, match="was closed: begin another"):
        session.step(3)
    session.close()


def test_a_model_that_keeps_nothing_has_no_conversations(device):
    from tests.support.images import copy_image

    with pytest.raises(InputError, match="keeps nothing from one inference to the next"):
        device.load(copy_image(TINY)).session()


def test_steps_are_requests_like_others(device):
    """An urgent conversation suspends a long one at a point of each of its steps."""
    slow, urgent = (device.load(image()).session() for _ in range(2))
    with Runtime(device, preemptive=True, rule=lambda _: Mechanism.DUMP) as runtime:
        for at, token in enumerate(TOKENS):
            long = runtime.submit(slow, token)
            short = runtime.submit(urgent, TOKENS[-1 - at], priority=1, arrival=device.bus.cycle + 150 * (1 + at))
            np.testing.assert_array_equal(long.result()["y"], expected(TOKENS)[at])
            np.testing.assert_array_equal(short.result()["y"], expected(TOKENS[::-1])[at])
        assert runtime.switches >= len(TOKENS) // 2
