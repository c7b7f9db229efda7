"""Makes the table that ``caesura run --profile`` prints."""

from rich.console import Group

from caesura.profile import LayerProfile, Profile
from caesura.terminal import line, table

_LEGEND = (
    "Cycles are means over the engines. Losses are cycles in which the MAC arrays could have done more: array = "
    "rows, columns or taps without work; overhead = start, drain, ports; dram = MAC waited for data that LD2 still "
    "fetched; activations, weights = for data on the way from LV2; accumulators = for VEC; issue = MAC was about "
    "to start; empty = it had no instruction; prologue, events, turnaround = no body ran. Busiest: the unit besides "
    "MAC that worked longest. VEC waits: for what it waited longest, MAC's sums aside. Fetch: cycles in which the "
    "executor waited for an instruction."
)


def profile_table(profile: Profile) -> Group:
    """Return a table of the layers, the longest loss first, and the whole run at the end."""
    head = line("\nwhere the MAC cycles went, the longest loss first", "bold", lines=True)
    rows = table("", "layer", ">cycles", ">lost", ">bound", ">reached", "losses", "busiest", "VEC waits", ">fetch")
    for layer in profile.by_loss():
        rows.add_row(*_cells(layer))
    rows.add_section()
    rows.add_row(*_cells(profile.total))
    return Group(head, rows, line(_LEGEND, "dim"))


def losses(layer: LayerProfile, limit: float = 0.005) -> str:
    """Return the parts of a layer's cycles that are losses, the longest first, those below ``limit`` left out: ``dram
    36%, empty 24%``."""
    if not layer.cycles:
        return ""
    shares = sorted(((layer.parts[part] / layer.cycles, part) for part in layer.parts if part != "peak"), reverse=True)
    return ", ".join(f"{part} {share:.0%}" for share, part in shares if share >= limit)


def _cells(layer: LayerProfile) -> list[str]:
    unit, share = layer.busiest
    waits = {name: cycles for name, cycles in layer.vec_waits.items() if name != "sums"}
    cause = max(waits, key=lambda name: waits[name])
    bounded = layer.bound.cycles and layer.cycles
    return [
        layer.name,
        f"{layer.cycles:,.0f}",
        f"{layer.lost:,.0f}",
        f"{layer.bound.cycles:,.0f} {layer.bound.limit}" if bounded else "",
        f"{layer.bound.cycles / layer.cycles:.1%}" if bounded else "",
        losses(layer),
        f"{unit} {share:.0%}",
        f"{cause} {waits[cause] / layer.cycles:.0%}" if layer.cycles and waits[cause] else "",
        f"{layer.fetch_stalled:,.0f}",
    ]
