"""Estimates durations of layers, corrected by what the hardware's counters measured."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from sw.runtime.policies.contract import LayerCost


class Estimates:
    """Holds the costs of all layers of all models, by name of the model.

    ``gain``: how far a measurement moves an estimate, 1 replaces it. 0 keeps the estimates as they were.
    """

    def __init__(self, models: Mapping[str, Sequence[LayerCost]], gain: float = 0.5) -> None:
        if not 0 <= gain <= 1:
            raise ValueError(f"gain must be 0 to 1, not {gain}")
        self._costs = {name: list(layers) for name, layers in models.items()}
        self._reference = {name: tuple(layers) for name, layers in models.items()}
        self._remaining: dict[str, list[float]] = {}
        self._gain = gain

    def add(self, model: str, layers: Sequence[LayerCost]) -> None:
        """Add a model that was not known; one that was keeps what has been measured."""
        self._costs.setdefault(model, list(layers))
        self._reference.setdefault(model, tuple(layers))

    def reference(self, model: str, layer: int) -> LayerCost:
        """Return the reference durations of a layer (of **Queue-time balancing**): as stored, whatever was measured
        since."""
        return self._reference[model][layer]

    def layers(self, model: str) -> Sequence[LayerCost]:
        """Return the costs of all layers of ``model``."""
        return self._costs[model]

    def remaining(self, model: str, layer: int) -> float:
        """Return the duration of ``layer`` and all later ones when ``model`` runs alone: of memory access or of
        compute, whichever is longer, as they overlap."""
        if model not in self._remaining:
            layers = self._costs[model]
            loads = accumulate(cost.load for cost in reversed(layers))
            computes = accumulate(cost.compute for cost in reversed(layers))
            self._remaining[model] = [0.0, *map(max, loads, computes)][::-1]
        return self._remaining[model][layer]

    def correct(self, model: str, layer: int, *, load: float | None = None, compute: float | None = None) -> None:
        """Take a measured duration into account."""
        old = self._costs[model][layer]
        self._costs[model][layer] = old.scaled(
            old.load if load is None else old.load + self._gain * (load - old.load),
            old.compute if compute is None else old.compute + self._gain * (compute - old.compute),
        )
        self._remaining.pop(model, None)
