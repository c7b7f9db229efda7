"""The scores that the device must compute, bit for bit."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compiler import import_model, reference
from examples.words import CONTEXT


class IntegerStepper:
    """Runs a step model one token at a time by the compiler's integer reference, and keeps its past."""

    def __init__(self, model: Path) -> None:
        self._graph = import_model(model, sizes={"past": CONTEXT - 1})
        ports = [port for port in self._graph.inputs if port.name.startswith("past_")]
        self._past: dict[str, NDArray] = {port.name: np.zeros(port.shape, port.dtype) for port in ports}
        self.position = 0

    def step(self, token: int) -> NDArray[np.float32]:
        """Return the scores [vocabulary] of the token that follows."""
        feed = {"ids": np.array([[token]]), "position": np.array([[self.position]]), "past": np.array([self.position])}
        results = reference.run(self._graph, {**feed, **self._past})
        for name, value in self._past.items():
            value[:] = results[name.replace("past", "present", 1)][:, :, : CONTEXT - 1]
        self.position += 1
        return results["logits"].reshape(-1)
