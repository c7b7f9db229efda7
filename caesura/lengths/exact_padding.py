"""Serves a length by a kernel for a longer one, where that is exact."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from caesura.lengths.kernel_source import KernelSource
from compiler import padding_problem

Arrays = dict[str, npt.NDArray]
Shape = tuple[int, ...]


class ExactPadding:
    """Knows of one model which lengths may be padded to which, and how. Each pair of lengths is proved once."""

    def __init__(self, source: KernelSource) -> None:
        self._source = source
        self._problems: dict[tuple[int, int], str | None] = {}
        self._outputs: dict[int, dict[str, Shape]] = {}

    def problem(self, length: int, longer: int) -> str | None:
        """Return why results for ``length`` are not the beginning of those for ``longer``, or None if they are."""
        if (length, longer) not in self._problems:
            short = self._source.graph(length)
            self._problems[length, longer] = padding_problem(short, self._source.graph(longer))
            self._outputs[length] = {port.name: tuple(port.shape) for port in short.outputs}
        return self._problems[length, longer]

    def padded(self, inputs: Mapping[str, npt.NDArray], count: int) -> Arrays:
        """Return the inputs with ``count`` zeros behind the end."""
        padded = dict(inputs)
        for name, axis in self._source.dimension.axes:
            pads = [(0, count if each == axis else 0) for each in range(padded[name].ndim)]
            padded[name] = np.pad(padded[name], pads)
        return padded

    def cropped(self, outputs: Arrays, length: int) -> Arrays:
        """Return the beginning of outputs that belongs to ``length``, of which :meth:`problem` was asked before."""
        shapes = self._outputs[length]
        return {name: value[tuple(slice(size) for size in shapes[name])].copy() for name, value in outputs.items()}
