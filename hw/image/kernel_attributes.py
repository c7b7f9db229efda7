"""Defines what an image says of itself as a kernel, for **Run-time kernel matching**: the field ``kernel_attributes``.

``{"class_1": {name: value, ...}, "class_2": {name: value or range}}``. Class-1 values are single ones (head size,
data type, causal or not): text, whole numbers, true or false. There is one class-2 parameter (sequence length): a whole
number, or a range written with the reserved marker ``..``: ``"128..1024"`` covers both ends, ``".."`` alone everything.
An image without attributes is no kernel.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

MARKER = ".."  #: reserved: it writes ranges, so no value contains it
LARGEST = 2**31 - 1  #: class-2 value
_LARGEST_NUMBER = 2**63 - 1  #: class-1 value, in magnitude
_MOST_ATTRIBUTES, _LONGEST_TEXT = 64, 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RANGE = re.compile(rf"([0-9]{{1,10}}){re.escape(MARKER)}([0-9]{{1,10}})")

Class1Value = bool | int | str


class AttributeProblem(ValueError):
    """Says why attributes describe no kernel; names the attribute, its value, and what is allowed."""


@dataclass(frozen=True)
class ValueRange:
    """Holds the class-2 values from ``low`` to ``high``, both included; an exact value is a range of one. A
    ``universal`` range covers all values."""

    low: int
    high: int

    @property
    def exact(self) -> bool:
        """Return whether the range is a single value."""
        return self.low == self.high

    @property
    def universal(self) -> bool:
        """Return whether the range was written as the marker alone."""
        return (self.low, self.high) == (1, LARGEST)

    def covers(self, value: int) -> bool:
        """Return whether ``value`` lies in the range."""
        return self.low <= value <= self.high

    def distance(self, value: int) -> int:
        """Return how far ``value`` is from the nearest value in the range."""
        return max(self.low - value, value - self.high, 0)

    def written(self) -> int | str:
        """Return the range as attributes write it."""
        if self.exact:
            return self.low
        return MARKER if self.universal else f"{self.low}{MARKER}{self.high}"

    @classmethod
    def read(cls, written: object, name: str = "value") -> "ValueRange":
        """Return the range that a value or a range in attributes stands for. Raises :class:`AttributeProblem`."""
        if isinstance(written, str):
            if written == MARKER:
                return EVERYTHING
            bounds = _RANGE.fullmatch(written)
            if bounds is None:
                raise AttributeProblem(
                    f"class-2 value {name!r} must be a whole number, a range such as '128{MARKER}1024', or "
                    f"'{MARKER}' alone, not {_shown(written)}"
                )
            low, high = int(bounds[1]), int(bounds[2])
            if not 1 <= low <= high <= LARGEST:
                raise AttributeProblem(
                    f"class-2 range {name!r} must go up from at least 1 to at most {LARGEST}, not {written!r}"
                )
            return cls(low, high)
        value = check_class_2(written, name)
        return cls(value, value)


EVERYTHING = ValueRange(1, LARGEST)


@dataclass(frozen=True)
class KernelAttributes:
    """Holds checked attributes. ``key`` is the text of the class-1 values and the name of the class-2 parameter. It is
    the same object for the same attributes: it carries its hash, and is compared by identity."""

    class_1: Mapping[str, Class1Value]
    parameter: str  #: name of the class-2 parameter
    covered: ValueRange
    key: str

    @classmethod
    def of(
        cls, class_1: Mapping[str, Class1Value], parameter: str, covered: ValueRange | int | str
    ) -> "KernelAttributes":
        """Return attributes made from their parts; ``covered`` is given as :meth:`ValueRange.read` takes it. Raises
        :class:`AttributeProblem`."""
        key = class_1_key(class_1, parameter)
        found = covered if isinstance(covered, ValueRange) else ValueRange.read(covered, parameter)
        return cls(dict(class_1), parameter, found, key)

    @classmethod
    def parse(cls, raw: object) -> "KernelAttributes":
        """Return the attributes in that field of an image. Raises :class:`AttributeProblem`."""
        if not isinstance(raw, Mapping) or set(raw) != {"class_1", "class_2"}:
            given = sorted(map(str, raw)) if isinstance(raw, Mapping) else raw
            raise AttributeProblem(f"attributes have the entries 'class_1' and 'class_2', not {_shown(given)}")
        class_1, class_2 = raw["class_1"], raw["class_2"]
        if not isinstance(class_1, Mapping):
            raise AttributeProblem(f"class_1 must hold values by name, not {_shown(class_1)}")
        if not isinstance(class_2, Mapping) or len(class_2) != 1:
            raise AttributeProblem(f"class_2 must hold one value or range by name, not {_shown(class_2)}")
        ((parameter, written),) = class_2.items()
        return cls.of(class_1, parameter, ValueRange.read(written, str(parameter)))

    def to_dict(self) -> dict[str, dict[str, Class1Value]]:
        """Return the attributes as an image holds them."""
        return {"class_1": dict(self.class_1), "class_2": {self.parameter: self.covered.written()}}


def class_1_key(class_1: Mapping[str, Class1Value], parameter: str) -> str:
    """Return the key of class-1 values by name, in any order. Raises :class:`AttributeProblem`."""
    if len(class_1) > _MOST_ATTRIBUTES:
        raise AttributeProblem(f"class_1 holds {len(class_1)} values; at most {_MOST_ATTRIBUTES} are allowed")
    for name in (*class_1, parameter):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise AttributeProblem(f"names of attributes are letters, digits and '_', at most 64, not {_shown(name)}")
    if parameter in class_1:
        raise AttributeProblem(f"attribute {parameter!r} is in class_1 and in class_2; it belongs to one of them")
    for name, value in class_1.items():
        _check_class_1(name, value)
    return sys.intern(json.dumps([dict(sorted(class_1.items())), parameter], separators=(",", ":")))


def check_class_2(value: object, name: str) -> int:
    """Return ``value`` if a request may have it in class 2. Raises :class:`AttributeProblem`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise AttributeProblem(f"class-2 value {name!r} must be a whole number of 1 to {LARGEST}, not {_shown(value)}")
    return value


def _check_class_1(name: str, value: object) -> None:
    if isinstance(value, str):
        if MARKER in value:
            raise AttributeProblem(
                f"class-1 value {name!r} must be a single value; {_shown(value)} has the reserved marker '{MARKER}', "
                "which writes ranges of class 2"
            )
        if value and value.isprintable() and len(value) <= _LONGEST_TEXT:
            return
    elif isinstance(value, int) and abs(value) <= _LARGEST_NUMBER:  # true and false are numbers here
        return
    raise AttributeProblem(
        f"class-1 value {name!r} must be true, false, a whole number of at most 63 bits, or printable text of at most "
        f"{_LONGEST_TEXT} characters, not {_shown(value)}"
    )


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or what holds itself
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= 80 else text[:77] + "..."
