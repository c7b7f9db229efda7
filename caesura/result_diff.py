"""Compares two results that commands printed as JSON: runs of models layer by layer, or figures of a benchmark."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caesura import api
from caesura.layer_alignment import AlignedLayers, aligned, cycles, named, utilisation

#: Figures of a run as a whole, by their keys in its JSON.
_TOTALS = ("cycles", "latency_cycles", "host_cycles", "macs", "utilisation")
_MOST = 2**63  #: neither infinity nor what is not a number
_HOW = "give what `caesura run --json` or `caesura bench --json` printed"


@dataclass(frozen=True)
class ChangedValue:
    """Says that what is called ``name`` was ``before`` and is ``after``; None: it is not there."""

    name: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        """Return by how much it is more, None if it is in one alone."""
        return None if self.before is None or self.after is None else round(self.after - self.before, 9)

    @property
    def percent(self) -> float | None:
        """Return by how many percent it is more, None if nothing says."""
        return None if self.difference is None or not self.before else round(100 * self.difference / self.before, 3)


@dataclass(frozen=True)
class ChangedLayers(ChangedValue):
    """Says how many cycles the layers took that do the same work in two runs, one after the other, and what share of
    the MAC peak they used; None where that is not told."""

    utilisation_before: float | None = None
    utilisation_after: float | None = None
    layers_before: tuple[str, ...] = ()
    layers_after: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultDiff:
    """Holds what two results have in common: ``totals`` of one name, and ``parts``, the layers of two runs that stand
    for the same ONNX nodes; ``equal`` outputs, None if they had other inputs, or there are none; ``note``: what a
    reader must know of how they were compared, if anything."""

    titles: tuple[str, str]
    totals: Sequence[ChangedValue]
    parts: Sequence[ChangedLayers]
    equal: bool | None
    note: str = ""


def read_result(path: Path) -> dict[str, Any]:
    """Return a result in a file. Raises :class:`caesura.api.UsageError` for one that is none, ``OSError``."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise api.UsageError(f"{path}: no JSON ({error}); {_HOW}") from None
    if not isinstance(found, dict) or not (is_run(found) or _is_bench(found)):
        raise api.UsageError(f"{path}: holds neither a run nor figures of a benchmark; {_HOW}")
    return found


def result_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> ResultDiff:
    """Return how ``after`` differs from ``before``; figures are those of one name, layers those of the same nodes.
    Raises :class:`caesura.api.UsageError` for results of two kinds."""
    if is_run(before) != is_run(after):
        raise api.UsageError(f"a run and a benchmark cannot be compared; {_HOW} of both")
    titles = _title(before), _title(after)
    if not is_run(before):
        return ResultDiff(titles, _changes(*(_named(one["rows"], "value") for one in (before, after))), [], None)
    totals = [ChangedValue(name, before.get(name), after.get(name)) for name in _TOTALS]
    parts = [_of_layers(group) for group in aligned(before["layers"], after["layers"])]
    comparable = before.get("model") == after.get("model") and before.get("inputs") == after.get("inputs")
    equal = before.get("outputs") == after.get("outputs") if comparable and before.get("outputs") else None
    silent = [
        title for title, run in zip(titles, (before, after), strict=True) if run["layers"] and not named(run["layers"])
    ]
    note = f"{' and '.join(silent)}: no ONNX nodes are told, so layers of one name are compared" if silent else ""
    return ResultDiff(titles, totals, parts, equal, note)


def _of_layers(group: AlignedLayers) -> ChangedLayers:
    before, after = group.before, group.after
    return ChangedLayers(
        group.name, cycles(before), cycles(after), utilisation(before), utilisation(after),
        tuple(layer["name"] for layer in before), tuple(layer["name"] for layer in after),
    )  # fmt: skip


def is_run(result: object) -> bool:
    """Return whether ``result`` is what ``caesura run --json`` tells, as far as comparisons read it."""
    return (
        isinstance(result, Mapping)
        and "cycles" in result
        and all(_is_number(result.get(name)) for name in _TOTALS)
        and _is_list(result.get("layers"), "cycles")
        and all(_is_number(layer.get("utilisation")) for layer in result["layers"])
    )


def _is_bench(result: Mapping[str, Any]) -> bool:
    return isinstance(result.get("bench"), str) and _is_list(result.get("rows"), "value")


def _is_list(rows: object, key: str) -> bool:
    """Return whether ``rows`` have a name and a number called ``key``, or none where it was not measured."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    return all(isinstance(row.get("name"), str) and key in row and _is_number(row[key]) for row in rows)


def _is_number(value: object) -> bool:
    """Return whether ``value`` is a number that counts something, or None where nothing was measured."""
    return value is None or (isinstance(value, int | float) and abs(value) <= _MOST)


def _title(result: Mapping[str, Any]) -> str:
    return f"{result.get('model') or result.get('bench')} on {result.get('preset')} ({result.get('backend')})"


def _named(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float | None]:
    """Return values by name; a name that comes again has its number behind it."""
    seen, found = Counter[str](), dict[str, float | None]()
    for row in rows:
        seen[row["name"]] += 1
        again = seen[row["name"]]
        found[row["name"] if again == 1 else f"{row['name']} ({again})"] = row[key]
    return found


def _changes(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> list[ChangedValue]:
    """Return changes in the order of ``before``, what is new behind them."""
    return [ChangedValue(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))]
