"""Says how the parameters of an image's jobs follow from numbers that an inference gives: a position, a length."""

from collections.abc import Iterator, Mapping, Sequence

import pydantic
from pydantic.dataclasses import dataclass

from hw.contract.formats import PARAMETERS

_WORD = 1 << 32
MOST_PARAMETERS = 1 << 10  #: of all jobs of an image


class NumberProblem(ValueError):
    """Says which number is missing or out of its range."""


@dataclass(config=pydantic.ConfigDict(extra="forbid"), frozen=True)
class ParameterInfo:
    """Describes a parameter of jobs of an image, by its place in the table: it follows from the number ``name`` of
    an inference, which is ``low`` to ``high`` in steps of ``step``, as ``(number + add) // div % mod * mul``."""

    name: str
    low: int
    high: int
    step: int = 1
    add: int = 0
    div: int = 1
    mod: int = _WORD
    mul: int = 1

    def value(self, number: int) -> int:
        """Return what the jobs of an inference get."""
        return (number + self.add) // self.div % self.mod * self.mul


def parameter_values(table: Sequence[ParameterInfo], numbers: Mapping[str, int]) -> tuple[int, ...]:
    """Return the parameters of an inference with these ``numbers``, one for each of ``table``; raises
    :class:`NumberProblem`."""
    for info in table:
        number = numbers.get(info.name)
        if number is None or number not in range(info.low, info.high + 1, info.step):
            steps = f" in steps of {info.step}" if info.step > 1 else ""
            given = "is missing" if number is None else f"is {number}"
            raise NumberProblem(f"{info.name!r} {given}; it must be {info.low} to {info.high}{steps}")
    unknown = sorted(numbers.keys() - {info.name for info in table})
    if unknown:
        known = ", ".join(repr(info.name) for info in table) or "none"
        raise NumberProblem(f"{unknown[0]!r} is not known; its numbers are {known}")
    return tuple(info.value(numbers[info.name]) for info in table)


def choice_problems(chosen: Sequence[int], count: int) -> Iterator[str]:
    """Yield what is wrong with the parameters of a job, which are ``chosen`` of ``count``."""
    if len(chosen) > PARAMETERS:
        yield f"{len(chosen)} parameters, where jobs carry {PARAMETERS}"
    yield from (f"there is no parameter {one}" for one in chosen if not 0 <= one < count)


def table_problems(table: Sequence[ParameterInfo]) -> Iterator[str]:
    """Yield what is wrong with a table of parameters."""
    if len(table) > MOST_PARAMETERS:
        yield f"{len(table)} parameters, where an image has at most {MOST_PARAMETERS}"
    for number, info in enumerate(table):
        possible = 0 <= info.low <= info.high and info.step > 0 and info.div > 0 and info.mod > 0
        largest = min(info.mod - 1, (info.high + info.add) // info.div) * info.mul if possible else -1
        if not possible or info.low + info.add < 0 or not 0 <= largest < _WORD:
            yield f"parameter {number} ({info.name!r}): its range or its formula is impossible"
