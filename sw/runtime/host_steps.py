"""Runs steps of a model on the CPU: small ONNX models inside the image, and the cycles that they are charged."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hw.contract.bus import LINE_BYTES, HostCosts
from hw.image import Image, ImageError, StepInfo
from sim.host import DEFAULT_LIMITS, ContainedModels, HostLimits, HostModelError, HostStepError, HostWork, work_of


class HostSteps:
    """Holds the host models of an image, ready to run in a process of their own within ``limits``. Raises
    ``ImageError`` if one is refused."""

    def __init__(self, image: Image, limits: HostLimits = DEFAULT_LIMITS) -> None:
        self._models, self._name = image.host_models, image.meta.model
        self._tensors = {t.name: (np.dtype(t.dtype), tuple(t.shape)) for t in image.meta.tensors}
        self._contained = _opened(image, limits) if image.host_models else None
        self._work: dict[int, HostWork] = {}

    def run(self, step: StepInfo, tensors: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """Return the outputs of ``step`` by tensor name, from its input tensors by name. Raises ``HostStepError``,
        which names the model and the step."""
        assert self._contained is not None
        try:
            return self._contained.run(step.host, tensors, {name: self._tensors[name] for name in step.outputs})
        except HostStepError as error:
            where = f"model {self._name!r}, step on the CPU for {', '.join(map(repr, step.outputs))}"
            raise HostStepError(f"{where} ({step.reason}): {error}") from None

    def cycles(self, step: StepInfo, costs: HostCosts) -> int:
        """Return the cycles that ``step`` takes the CPU: its operators, and the cache lines of what it reads and
        writes."""
        if step.host not in self._work:
            self._work[step.host] = work_of(self._models[step.host])
        work = self._work[step.host]
        lines = sum(-(-self._size(name) // LINE_BYTES) for name in (*step.inputs, *step.outputs))
        operators = work.elements * costs.cpu_element + work.functions * costs.cpu_function + work.macs * costs.cpu_mac
        return costs.cpu_step + round(operators) + lines * costs.memory_line

    def _size(self, name: str) -> int:
        dtype, shape = self._tensors[name]
        return dtype.itemsize * math.prod(shape)


def _opened(image: Image, limits: HostLimits) -> ContainedModels:
    try:
        return ContainedModels(image.host_models, limits)
    except HostModelError as error:
        raise ImageError(f"image {image.meta.model!r}, host model {error.number}: {error}") from None
