"""Figures: what a benchmark measures, by name, with what it must and should reach, and how a selection becomes rows."""

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.lab import Lab
from caesura import UsageError
from compiler import CompileError, UnsupportedModel
from hw.contract.bus import BusError, BusTimeout
from hw.contract.params import ParamError
from sim.rtl import DisagreementError
from sim.toolchain import BuildError
from sw.driver import DriverError


@dataclass(frozen=True)
class Target:
    """What a figure ``must`` and should (``aim``) reach, in ``unit``. ``at_most``: smaller is better."""

    must: float
    aim: float
    unit: str = "%"
    at_most: bool = False

    def met(self, value: float) -> bool:
        """Return whether ``value`` is within ``must``."""
        return value <= self.must if self.at_most else value >= self.must

    def reached(self, value: float) -> bool:
        """Return whether ``value`` is as good as ``aim``."""
        return value <= self.aim if self.at_most else value >= self.aim


@dataclass(frozen=True)
class Row:
    """One figure. ``value`` is None if it could not be measured; ``ok``: it meets ``must`` and every output it
    rests on equals the golden result, or it was ``skipped`` as something it needs is not installed."""

    name: str
    value: float | None
    target: Target
    correct: bool
    detail: dict[str, Any] = field(default_factory=dict)
    skipped: bool = False

    @property
    def ok(self) -> bool:
        """See the class."""
        return self.skipped or (self.correct and self.value is not None and self.target.met(self.value))

    @property
    def explanation(self) -> str:
        """Short: why there is no value, what is wrong, or which layer or part of the cycles is behind the value."""
        if "explanation" in self.detail:
            return str(self.detail["explanation"])
        if self.value is None:
            return str(self.detail.get("error", ""))
        if not self.correct:
            return str(self.detail.get("outputs", "outputs differ from onnxruntime's"))
        if "worst" in self.detail:
            return f"worst: {self.detail['worst']}"
        parts = self.detail.get("parts")
        if not parts:
            return ""
        losses = sorted(((cycles, name) for name, cycles in parts.items() if name != "peak"), reverse=True)[:2]
        lost = ", ".join(f"{name} {cycles / self.detail['cycles']:.1%}" for cycles, name in losses)
        return f"{self.detail['cycles']:,} cycles; lost: {lost}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: ``name, value, unit, must, aim, ok, detail``."""
        aimed = self.value is not None and self.target.reached(self.value)
        sense = "at most" if self.target.at_most else "at least"
        return {
            "name": self.name,
            "value": None if self.value is None else round(self.value, 3),
            "unit": self.target.unit,
            "must": self.target.must,
            "aim": self.target.aim,
            "ok": self.ok,
            "detail": {"target": sense, "aim_reached": aimed, "correct": self.correct, **self.detail},
        }


class NotAvailableError(RuntimeError):
    """What a figure needs is not there, which is nobody's fault; says what, and how to get it."""


class Measured(NamedTuple):
    """A value in the target's unit, whether the outputs behind it equal the golden result, and what explains it."""

    value: float
    correct: bool
    detail: dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One row to be. ``optional`` ones are left out unless asked for, as they take many minutes."""

    name: str
    target: Target
    measure: Callable[[Lab], Measured]
    optional: bool = False

    def row(self, lab: Lab) -> Row:
        """Measure. What cannot be compiled or run makes a row without a value that says why."""
        try:
            value, correct, detail = self.measure(lab)
        except NotAvailableError as error:
            return Row(self.name, None, self.target, True, {"error": str(error)}, skipped=True)
        except UnsupportedModel as error:
            return Row(self.name, None, self.target, False, {"error": error.told(None)})
        except (CompileError, DriverError, ParamError, BusError, BusTimeout, BuildError, DisagreementError) as error:
            return Row(self.name, None, self.target, False, {"error": str(error)})
        return Row(self.name, value, self.target, correct, detail)


def select(figures: Sequence[Figure], only: Sequence[str], everything: bool) -> list[Figure]:
    """Return the figures to measure: those that match a pattern of ``only`` (as file names do: ``conv_*_k3_*``), by
    default all that are not optional, with ``everything`` the optional ones too. Raises ``UsageError``."""
    for pattern in only:
        if not any(fnmatch.fnmatchcase(figure.name, pattern) for figure in figures):
            names = ", ".join(figure.name for figure in figures)
            raise UsageError(f"no figure matches {pattern!r}; there are {names}")
    if only:
        return [f for f in figures if any(fnmatch.fnmatchcase(f.name, pattern) for pattern in only)]
    return [figure for figure in figures if everything or not figure.optional]
