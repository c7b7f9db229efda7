"""Steps of a model that run on the CPU: small ONNX models inside the image, and the cycles that they are charged."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hw.contract.image import Image, ImageError, StepInfo
from sim.bus import LINE_BYTES, HostCosts
from sim.host import HostSession, HostWork, work_of


class HostSteps:
    """The host models of an image, ready to run. Raises ``ImageError`` if onnxruntime refuses one."""

    def __init__(self, image: Image) -> None:
        self._models = image.host_models
        self._sizes = {t.name: np.dtype(t.dtype).itemsize * int(np.prod(t.shape)) for t in image.meta.tensors}
        self._sessions = [_opened(image, number) for number in range(len(image.host_models))]
        self._work: dict[int, HostWork] = {}

    def run(self, step: StepInfo, tensors: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """Outputs of ``step`` by tensor name, from its input tensors by name."""
        values = self._sessions[step.host](tensors)
        return {name: values[name] for name in step.outputs}

    def cycles(self, step: StepInfo, costs: HostCosts) -> int:
        """What ``step`` takes the CPU: its operators, and the cache lines of what it reads and writes."""
        if step.host not in self._work:
            self._work[step.host] = work_of(self._models[step.host])
        work = self._work[step.host]
        lines = sum(-(-self._sizes[name] // LINE_BYTES) for name in (*step.inputs, *step.outputs))
        operators = work.elements * costs.cpu_element + work.functions * costs.cpu_function + work.macs * costs.cpu_mac
        return costs.cpu_step + round(operators) + lines * costs.memory_line


def _opened(image: Image, number: int) -> HostSession:
    try:
        return HostSession(image.host_models[number])
    except Exception as error:  # onnxruntime's exceptions have no common base of their own
        what = f"image {image.meta.model!r}, host model {number}"
        raise ImageError(f"{what}: onnxruntime refuses the host model: {error}") from None
