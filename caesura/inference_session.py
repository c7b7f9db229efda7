"""A session as onnxruntime has it: a script for that one runs on the accelerator when its import is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

import numpy.typing as npt

from caesura import api
from hw.contract.params import SocParams
from hw.image import Image, PortInfo
from sim import DEFAULT_BACKEND
from sw.runtime import InputError, RunStats

_TYPES = {"float32": "tensor(float)"}  #: as ONNX calls types; others by NumPy's name
_PROVIDERS = ("CaesuraExecutionProvider",)


def get_available_providers() -> list[str]:
    """Return what can run models, as onnxruntime's function of this name does: the accelerator."""
    return list(_PROVIDERS)


@dataclass(frozen=True)
class SessionPort:
    """Describes an input or output: ``type`` as onnxruntime writes it, such as ``tensor(float)``."""

    name: str
    shape: list[int]
    type: str


class InferenceSession:
    """Compiles a quantised ONNX file, or takes an image, and runs it on a simulated device of its own. What
    onnxruntime's class of this name has in common with it means the same; ``sess_options``, ``providers`` and
    ``provider_options`` are taken and not looked at. It can be a context manager; :meth:`close` powers the device off.

    Parameters
    ----------
    path_or_image : an ONNX file, what it holds as bytes, a ``.cimg`` file or an image
    preset, backend : as for ``caesura.open``
    compiling : arguments of ``caesura.compile``, such as ``fallback=True``

    Raises what ``caesura.compile`` and ``caesura.Device.load`` do.
    """

    def __init__(
        self, path_or_image: str | PathLike | bytes | Image, sess_options: object = None, providers: object = None,
        provider_options: object = None, *, preset: str | SocParams = "tiny", backend: str = DEFAULT_BACKEND,
        **compiling: Any,
    ) -> None:  # fmt: skip
        image = path_or_image
        if isinstance(image, bytes):
            with TemporaryDirectory() as folder:
                file = Path(folder, "model.onnx")
                file.write_bytes(image)
                image = api.compile(file, preset, **compiling)
        elif not isinstance(image, Image):
            ready = str(image).endswith(".cimg")
            image = Image.load(Path(image)) if ready else api.compile(image, preset, **compiling)
        self._device = api.open(image.params, backend)
        try:
            self._model = self._device.load(image)
        except BaseException:
            self._device.close()
            raise

    def __repr__(self) -> str:
        """Return in a line what it runs, and on what."""
        image = self._model.image
        return f"<InferenceSession {image.meta.model!r} on {image.params.name!r}>"

    def get_inputs(self) -> list[SessionPort]:
        """Return what the model is given, in order."""
        return [_argument(port) for port in self._model.image.meta.inputs]

    def get_outputs(self) -> list[SessionPort]:
        """Return what the model gives, in order."""
        return [_argument(port) for port in self._model.image.meta.outputs]

    def get_providers(self) -> list[str]:
        """Return where the model runs."""
        return get_available_providers()

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, npt.ArrayLike], run_options: object = None
    ) -> list[npt.NDArray]:  # fmt: skip
        """Run one inference; return the outputs called ``output_names``, None or none for all. Raises ``InputError``,
        a ``ValueError``, for an input that is missing, not known, or of another shape or type, and for an unknown
        output; what ``Model`` raises if the device fails."""
        known = [port.name for port in self._model.image.meta.outputs]
        names = list(output_names or known)
        for name in names:
            if name not in known:
                raise InputError(
                    f"output {name!r} does not exist; model {self._model.image.meta.model!r} gives "
                    f"{', '.join(map(repr, known))}"
                )
        outputs, _ = self._model.run(dict(input_feed))
        return [outputs[name] for name in names]

    @property
    def stats(self) -> RunStats | None:
        """Return cycles and counters of the last inference, or None before the first."""
        return self._model.stats

    def close(self) -> None:
        """Power the device off."""
        self._device.close()

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _argument(port: PortInfo) -> SessionPort:
    return SessionPort(port.name, list(port.shape), _TYPES.get(port.dtype, f"tensor({port.dtype})"))
