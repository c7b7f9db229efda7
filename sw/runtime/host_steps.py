"""Steps of a model that run on the CPU: small ONNX models inside the image, executed by onnxruntime."""

import numpy.typing as npt
import onnxruntime

from hw.contract.image import ImageError, StepInfo


class HostStepRunner:
    """One host model of an image, ready to run. Raises ``ImageError`` if onnxruntime refuses it."""

    def __init__(self, serialised: bytes, what: str) -> None:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.qdqisint8allowed", "1")  # integer kernels for QDQ, on x86-64 too
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(serialised, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base of their own
            raise ImageError(f"{what}: onnxruntime refuses the host model: {error}") from None

    def run(self, step: StepInfo, tensors: dict[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """Outputs of ``step`` by tensor name, from its input tensors by name."""
        values = self._session.run(step.outputs, {name: tensors[name] for name in step.inputs})
        return dict(zip(step.outputs, values, strict=True))
