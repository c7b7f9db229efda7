"""Makes the table of layers that ``caesura run`` prints with ``--profile`` and writes on the page of ``--report``."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group

from caesura.profiles import LayerProfile, Profile
from caesura.views.tables import Column, ColumnTable, percent
from caesura.views.terminal import line

_LEGEND = (
    "Cycles are means over the engines. Losses are cycles in which the MAC arrays could have done more: array = "
    "rows, columns or taps without work; overhead = start, drain, ports; dram = MAC waited for data that LD2 still "
    "fetched; activations, weights = for data on the way from LV2; accumulators = for VEC; issue = MAC was about "
    "to start; empty = it had no instruction; prologue, events, turnaround = no body ran. Busiest: the unit besides "
    "MAC that worked longest. VEC waits: for what it waited longest, MAC's sums aside. Fetch: cycles in which the "
    "executor waited for an instruction."
)


def _whole(cycles: float) -> str:
    return f"{cycles:,.0f}"


_COLUMNS = (
    Column("name", "layer"),
    Column("kind"),
    Column("macs", "MACs", number=True),
    Column("cycles", number=True, text=_whole),
    Column("lost", number=True, text=_whole),
    Column("bound", number=True),
    Column("reached", number=True, text=percent),
    Column("losses"),
    Column("busiest"),
    Column("vec_waits", "VEC waits"),
    Column("fetch", number=True, text=_whole),
)


def profile_table(profile: Profile) -> Group:
    """Return a table of the layers, the longest loss first, and the whole run at the end."""
    head = line("\nwhere the MAC cycles went, the longest loss first", "bold", lines=True)
    rows = layer_table(profile.by_loss(), profile.total).without("kind", "macs")
    return Group(head, rows.rich(), line(_LEGEND, "dim"))


def layer_table(layers: Sequence[LayerProfile], total: LayerProfile) -> ColumnTable:
    """Return a table with a row for each of ``layers``, and one for the run."""
    return ColumnTable("", _COLUMNS, [_row(layer) for layer in layers], [_row(total)])


def losses(layer: LayerProfile, limit: float = 0.005) -> str:
    """Return the parts of a layer's cycles that are losses, the longest first, those below ``limit`` left out: ``dram
    36%, empty 24%``."""
    if not layer.cycles:
        return ""
    shares = sorted(((layer.parts[part] / layer.cycles, part) for part in layer.parts if part != "peak"), reverse=True)
    return ", ".join(f"{part} {share:.0%}" for share, part in shares if share >= limit)


def _row(layer: LayerProfile) -> dict[str, Any]:
    unit, share = layer.busiest
    waits = {name: cycles for name, cycles in layer.vec_waits.items() if name != "sums"}
    cause = max(waits, key=lambda name: waits[name])
    bounded = layer.bound.cycles and layer.cycles
    return {
        "name": layer.name,
        "kind": layer.kind,
        "macs": layer.macs,
        "cycles": layer.cycles,
        "lost": layer.lost,
        "bound": f"{layer.bound.cycles:,.0f} {layer.bound.limit}" if bounded else "",
        "reached": layer.bound.cycles / layer.cycles if bounded else None,
        "losses": losses(layer),
        "busiest": f"{unit} {share:.0%}",
        "vec_waits": f"{cause} {waits[cause] / layer.cycles:.0%}" if layer.cycles and waits[cause] else "",
        "fetch": layer.fetch_stalled,
    }
