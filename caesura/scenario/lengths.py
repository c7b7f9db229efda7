"""Says how long the inputs of a stream's requests are, for models with a dynamic dimension."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import pydantic

from caesura.scenario.arrivals import Arrivals, request_count
from caesura.scenario.file_table import FileTable
from hw.image import LARGEST


class LengthRange(FileTable):
    """Draws a random length from ``least`` to ``most`` for each request, the same ones for the same seed."""

    least: int
    most: int


def _checked(value: Any) -> "list[int] | LengthRange":
    """Return lengths in one of their two forms; one length is a list of one."""
    if isinstance(value, LengthRange):
        value = value.model_dump()
    if isinstance(value, dict) and value.keys() == {"least", "most"}:
        if _are_lengths(value.values()) and value["least"] <= value["most"]:
            return LengthRange(**value)
    else:
        lengths = value if isinstance(value, list | tuple) else [value]
        if lengths and _are_lengths(lengths):
            return list(lengths)
    raise ValueError(
        "must be a length such as 64, several in turn such as [32, 64], or random ones such as { least = 1, most = "
        f"128 }}, each 1 to {LARGEST}"
    )


def _are_lengths(values: Iterable[Any]) -> bool:
    return all(isinstance(each, int) and not isinstance(each, bool) and 1 <= each <= LARGEST for each in values)


Lengths = Annotated[list[int] | LengthRange, pydantic.PlainValidator(_checked)]


def lengths_of(
    lengths: list[int] | LengthRange | None, seed: int, stream: str, arrivals: Arrivals, folder: Path
) -> set[int]:
    """Return the lengths of all requests of a stream, none if it has none; ``folder`` is for the file of a trace."""
    count = 0 if lengths is None else request_count(arrivals, folder)
    return set() if lengths is None else {length_of(lengths, seed, stream, number) for number in range(count)}


def length_of(lengths: list[int] | LengthRange, seed: int, stream: str, number: int) -> int:
    """Return the length of request ``number`` of a stream."""
    if isinstance(lengths, LengthRange):
        return random.Random(f"{seed} {stream} {number}").randint(lengths.least, lengths.most)
    return lengths[number % len(lengths)]
