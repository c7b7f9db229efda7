"""Finds which layers of two runs do the same work: those that stand for the same ONNX nodes, however these were fused
or split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

Layer = Mapping[str, Any]  #: as ``caesura run --json`` tells of it


@dataclass(frozen=True)
class AlignedLayers:
    """Holds the layers of both runs that stand for the same nodes. One of both may have none."""

    before: tuple[Layer, ...]
    after: tuple[Layer, ...]

    @property
    def name(self) -> str:
        """Return the names of the layers, and how many there were and are if that differs."""
        old, new = (", ".join(dict.fromkeys(layer["name"] for layer in side)) for side in (self.before, self.after))
        if not old or not new or old == new:
            return old or new
        counts = len(self.before), len(self.after)
        return f"{old} → {new}" if counts == (1, 1) else f"{old} ({counts[0]} → {counts[1]})"


def aligned(before: Sequence[Layer], after: Sequence[Layer]) -> list[AlignedLayers]:
    """Return all layers of two runs, together as far as they share nodes, in the order of ``before``; what is in
    ``after`` alone comes behind. Layers that share none are those of one name, the second of a name the second."""
    shared = nx.Graph()
    sides = (before, after)
    for side, layers in enumerate(sides):
        for place, layer in enumerate(layers):
            shared.add_node((side, place))
            shared.add_edges_from(((side, place), node) for node in _nodes(layer))
    groups = [sorted(key for key in group if isinstance(key, tuple)) for group in nx.connected_components(shared)]
    alone: list[dict[tuple[str, int], list[tuple[int, int]]]] = [{}, {}]
    found = []
    for group in sorted(groups):
        side = group[0][0]
        if side == group[-1][0]:
            name = sides[side][group[0][1]]["name"]
            alone[side][name, sum(name == other for other, _ in alone[side])] = group
        else:
            found.append(group)
    found += [group + alone[1].pop(name, []) for name, group in alone[0].items()]
    found = [*sorted(found), *alone[1].values()]
    return [AlignedLayers(*(tuple(sides[s][p] for s, p in group if s == side) for side in (0, 1))) for group in found]


def cycles(layers: Sequence[Layer]) -> float | None:
    """Return the cycles of ``layers``, one after the other; None without layers, or where one was not measured."""
    told = [layer["cycles"] for layer in layers]
    return None if not told or None in told else sum(told)


def utilisation(layers: Sequence[Layer]) -> float | None:
    """Return the share of the MAC peak of the engines that ``layers`` used, over their cycles; None if that is not
    told."""
    shares: list[Any] = [layer.get("utilisation") for layer in layers]
    weights = [(layer["cycles"] or 0) * max(1, len(_list(layer, "engines"))) for layer in layers]
    if not sum(weights) or None in shares:
        return None
    used = [share * weight for share, weight in zip(shares, weights, strict=True)]
    return sum(used) / sum(weights)


def named(layers: Sequence[Layer]) -> bool:
    """Return whether any of ``layers`` names the nodes that it stands for; older results do not."""
    return any(_nodes(layer) for layer in layers)


def _nodes(layer: Layer) -> list[str]:
    return [node for node in _list(layer, "nodes") if isinstance(node, str)]


def _list(layer: Layer, key: str) -> list[Any]:
    found = layer.get(key)
    return found if isinstance(found, list) else []
