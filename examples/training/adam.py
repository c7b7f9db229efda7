"""The optimiser, and the schedule of its learning rate."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Parameters = dict[str, NDArray[np.float32]]


class Adam:
    """Adam on `parameters`, which it changes in place. `weight_decay` is added to the gradient, times the value."""

    def __init__(self, parameters: Parameters, weight_decay: float) -> None:
        self.parameters, self.weight_decay = parameters, weight_decay
        self._first = {name: np.zeros(value.shape) for name, value in parameters.items()}
        self._second = {name: np.zeros(value.shape) for name, value in parameters.items()}
        self._steps = 0

    def step(self, gradient: Mapping[str, NDArray[np.float32]], rate: float) -> None:
        """Move all parameters one step against their gradient."""
        self._steps += 1
        first, second = self._first, self._second
        for name, value in self.parameters.items():
            slope = gradient[name] + self.weight_decay * value
            first[name] = 0.9 * first[name] + 0.1 * slope
            second[name] = 0.999 * second[name] + 0.001 * slope**2
            unbiased = np.sqrt(second[name] / (1 - 0.999**self._steps))
            direction = first[name] / (1 - 0.9**self._steps) / (unbiased + 1e-8)
            self.parameters[name] = (value - rate * direction).astype(np.float32)


def cosine(progress: float, warm_up: float = 0.0) -> float:
    """The learning rate, 0..1, at `progress` 0..1 of the training: it rises in the part `warm_up`, if there is one, and
    falls like a cosine all the way."""
    rising = min(1.0, progress / warm_up) if warm_up else 1.0
    return rising * 0.5 * (1 + np.cos(np.pi * progress))
