"""Driver and run time do to the bus what they did: the same calls at the same cycles, in scenarios of all kinds.

A change that is to keep behaviour keeps these digests. One that is meant to change calls or cycles takes the new ones
for the right ones by ``python -m tests.support.bus_log record``, and its commit says why they changed.
"""

import pytest

from hw.contract.params import preset
from tests.support.bus_log.log import EVERY, Digests, LoggedBus, difference
from tests.support.bus_log.scenarios import SCENARIOS, known, play
from tests.support.fake_soc import FakeSoc

HINT = (
    "compare it with that of the checkout before: `python -m tests.support.bus_log dump FOLDER {name}` there, then "
    "`python -m tests.support.bus_log compare FOLDER {folder}`"
)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_call_is_as_recorded(name, tmp_path):
    lines, right = play(name), known()[name]
    parts = Digests.of(lines).parts_within(right)
    if parts is not None:
        log = tmp_path / f"{name}.log"
        log.write_text("\n".join(lines) + "\n")
        first = "\n".join(lines[parts[0] - 1 : parts[0] + 2])
        hint = HINT.format(name=name, folder=tmp_path)
        pytest.fail(
            f"{name}: {len(lines)} calls, {right.lines} recorded; they part within calls {parts[0]} to {parts[1]} of "
            f"{log}, which begin with\n{first}\n{hint}",
            pytrace=False,
        )


def test_every_record_is_of_a_scenario():
    assert known().keys() == SCENARIOS.keys()


def test_a_log_tells_calls_arguments_cycles_and_results_apart():
    def logged(*calls):
        lines = []
        bus = LoggedBus(FakeSoc(preset("tiny")), lines)
        for name, *arguments in calls:
            getattr(bus, name)(*arguments)
        return lines

    before = logged(("write_mem", 0, b"a"), ("write_mem", 8, b"b"), ("advance", 5), ("wait_irq", 9))
    for other in (
        logged(("write_mem", 8, b"b"), ("write_mem", 0, b"a"), ("advance", 5), ("wait_irq", 9)),
        logged(("write_mem", 0, b"a"), ("write_mem", 8, b"c"), ("advance", 5), ("wait_irq", 9)),
        logged(("write_mem", 0, b"a"), ("write_mem", 8, b"b"), ("advance", 4), ("wait_irq", 9)),
        logged(("write_mem", 0, b"a"), ("write_mem", 8, b"b"), ("advance", 5), ("wait_irq", 8)),
        before[:-1],
    ):
        assert Digests.of(before).parts_within(Digests.of(other)) == (1, len(before))
        assert difference(before, other)
    assert Digests.of(before).parts_within(Digests.of(list(before))) is None and not difference(before, before)


@pytest.mark.parametrize("at", [0, EVERY - 1, EVERY, 3 * EVERY, 4 * EVERY - 1])
def test_where_two_logs_part(at):
    before = [f"line {i}" for i in range(4 * EVERY)]
    after = [*before[:at], "another", *before[at + 1 :]]
    first = at // EVERY * EVERY
    assert Digests.of(after).parts_within(Digests.of(before)) == (first + 1, first + EVERY)
    assert difference(before, after).startswith(f"they part at call {at + 1}:")
    assert Digests.of(before[:at]).parts_within(Digests.of(before)) == (first + 1, first + EVERY)
