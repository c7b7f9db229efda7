"""Figures: what a benchmark measures, by name, and how a selection of them becomes rows."""

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.lab import Lab
from benchmarks.rows import Row, Target
from caesura import UsageError
from compiler import CompileError, UnsupportedModel
from hw.contract.bus import BusError, BusTimeout
from hw.contract.params import ParamError
from sim.rtl import DisagreementError
from sim.toolchain import BuildError
from sw.driver import DriverError


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
