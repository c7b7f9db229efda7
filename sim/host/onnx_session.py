"""Runs ONNX models on the CPU with onnxruntime, in one way everywhere: compiler, checks and run time."""

import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, NotImplemented as NoKernel

from sim.host.onnx_models import ModelsKey

_QUIET = 3  # onnxruntime reports errors only
_SILENT = 4
_SESSIONS = 64  #: models kept ready


def session_options(*, precise: bool = False) -> onnxruntime.SessionOptions:
    """Return the options of every onnxruntime session here: integer kernels for QDQ graphs, one thread, errors only.

    ``precise``: products of uint8 and int8 do not saturate at 16 bits, as they otherwise do on x86 processors that have
    AVX2 but no VNNI. Models with int8 activations cannot be opened so there, and need not.
    """
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    if precise:
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = 1
    options.log_severity_level = _SILENT if precise else _QUIET  # what fails precisely is tried again
    return options


def session(
    model: onnx.ModelProto | bytes, optimised: Path | None = None, *, as_written: bool = False
) -> onnxruntime.InferenceSession:
    """Return a CPU session with :func:`session_options`, precise where that can be had. ``optimised``: a file for what
    onnxruntime makes of the model. ``as_written``: it makes nothing of it, and computes node by node in float32."""
    raw = model if isinstance(model, bytes) else model.SerializeToString()

    def opened(precise: bool, as_written: bool) -> onnxruntime.InferenceSession:
        options = session_options(precise=precise)
        if as_written:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if optimised is not None:
            options.optimized_model_filepath = str(optimised)
        return onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])

    try:
        return opened(True, as_written)
    except (NoKernel, Fail):  # some graphs it cannot rewrite; a model that is wrong fails again
        return opened(False, as_written)
    except InvalidGraph:  # others it rewrites to invalid ones, such as transposes of float8
        return opened(False, True)


class HostSession:
    """Runs a serialised ONNX model on the CPU. Call it with arrays by name."""

    def __init__(self, model: bytes):
        self._session: onnxruntime.InferenceSession = session(model)
        self.inputs = [value.name for value in self._session.get_inputs()]
        self.outputs = [value.name for value in self._session.get_outputs()]

    def __call__(self, arrays: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """Return outputs by name; raises KeyError if an input is missing, and ignores further arrays."""
        feed = {name: np.ascontiguousarray(arrays[name]) for name in self.inputs}
        return dict(zip(self.outputs, self._session.run(None, feed), strict=True))


@functools.lru_cache(maxsize=_SESSIONS)
def _loaded(key: ModelsKey) -> HostSession:
    return HostSession(*key.models)


def run_host(model: bytes, arrays: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
    """Run a serialised ONNX model (of ``ir.Host`` or of an image's host section); sessions are cached."""
    return _loaded(ModelsKey(model))(arrays)
