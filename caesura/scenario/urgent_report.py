"""Reports what ``caesura run --urgent`` found: one JSON object, or a table and a timeline."""

from typing import Any

from rich.console import Group

from caesura.scenario.outcome import Outcome
from caesura.scenario.outcome_chart import outcome_chart
from caesura.scenario.urgent import Together, UrgentRun
from caesura.views import Column, ColumnTable, line, width
from hw.contract.params import SocParams

_COLUMNS = (
    Column("run", "cycles"),
    Column("urgent", "worst urgent", number=True),
    Column("urgent_ratio", "of alone", number=True, text="{:.2f} x".format),
    Column("long", number=True),
    Column("long_ratio", "of alone", number=True, text="{:.3f} x".format),
    Column("switches", number=True),
)


def urgent_fields(found: UrgentRun, names: tuple[str, str], params: SocParams, backend: str) -> dict[str, Any]:
    """Return the report as data for JSON; ``names`` are those of the long model and of the urgent one."""
    return {
        "model": names[0],
        "urgent_model": names[1],
        "preset": params.name,
        "backend": backend,
        "arrivals": list(found.arrivals),
        "alone": {"long": found.long, "urgent": found.urgent},
        "waiting": _fields(found.waiting),
        "preempting": _fields(found.preempting),
        "equal": found.equal,
    }


def _fields(together: Together) -> dict[str, Any]:
    return {
        "long": together.long,
        "urgent": list(together.urgent),
        "switches": together.switches,
        "equal": together.equal,
    }


def urgent_tables(found: UrgentRun, names: tuple[str, str], params: SocParams, backend: str) -> Group:
    """Return the report for a terminal."""
    urgent = f"{names[1]} is more urgent: {_arrivals(found.arrivals)}"
    head = line(f"{names[0]} on {params.name} ({backend}), {urgent}", "bold")
    alone = {"run": "alone", "urgent": found.urgent, "urgent_ratio": 1.0, "long": found.long, "long_ratio": 1.0}
    rows = [alone | {"switches": 0}, _row("not preempted", found, found.waiting)]
    rows.append(_row("preempted", found, found.preempting))
    drawn = Outcome(params.engines, 1, timeline=list(found.preempting.spans))
    equal = "equal to those of the models alone" if found.equal else "NOT those of the models alone"
    stayed, most = len(found.arrivals) - found.preempting.switches, len(found.arrivals)
    why = "a switch would not have paid, or it had given way already"
    waited = [line(f"the long model went on at {stayed} of {most} arrivals: {why}")] if stayed > 0 else []
    table = ColumnTable("", _COLUMNS, rows).rich()
    return Group(
        head, table, *waited, line(f"outputs: {equal}", "" if found.equal else "bold red"),
        line(""), line("with preemption:"), outcome_chart(drawn, "cycles", width()),
    )  # fmt: skip


def _arrivals(cycles: tuple[int, ...]) -> str:
    first = f"arrives at cycle {cycles[0]:,}"
    return first if len(cycles) == 1 else f"{first}, and {len(cycles) - 1} times more, each {cycles[1] - cycles[0]:,}"


def _row(name: str, found: UrgentRun, together: Together) -> dict[str, Any]:
    return {
        "run": name,
        "urgent": max(together.urgent),
        "urgent_ratio": max(together.urgent) / found.urgent,
        "long": together.long,
        "long_ratio": together.long / found.long,
        "switches": together.switches,
    }
