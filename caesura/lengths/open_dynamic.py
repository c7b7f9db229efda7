"""Defines the public function ``caesura.dynamic``."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from caesura.api import Device
from compiler import Options

if TYPE_CHECKING:
    from caesura.lengths.dynamic_model import DynamicModel

LADDER = (32, 64, 96, 128, 192, 256, 384)  #: lengths of prior practice


def dynamic(
    path: str | PathLike,
    device: Device,
    lengths: range,
    *,
    dimension: str | None = None,
    ladder: Sequence[int] = LADDER,
    background: bool = False,
    most_loaded: int = 16,
    engines: int | None = None,
    fallback: bool = False,
    options: Options | None = None,
    cache: bool = True,
    tenant: str | None = None,
) -> "DynamicModel":
    """Return the ONNX model ``path``, which has a dynamic dimension, as one model on ``device`` for all of ``lengths``.

    Parameters
    ----------
    dimension : name of the dynamic dimension, if several inputs' dimensions behind the first are dynamic
    ladder : lengths whose kernels serve the shorter ones, padded, where that is exact; empty: no input is padded
    background : a length that was served so gets a kernel of its own, in the background, for the next call
    most_loaded : kernels that are in device memory at a time
    engines, fallback, options, cache : as for ``caesura.compile``
    tenant : as for ``Device.load``

    Raises ``CompileError`` for a model that cannot be read or has no such dimension, ``UsageError`` for lengths that
    are none. Kernels are compiled when a call, or ``DynamicModel.prepare``, asks for them.
    """
    from caesura.lengths.dynamic_model import DynamicModel  # only loaded where they are used
    from caesura.lengths.kernel_source import KernelSource
    from compiler import DynamicDimension

    chosen = replace(options or Options(), engines=engines or device.params.engines)
    source = KernelSource(DynamicDimension.of(Path(path), dimension), device.params, chosen, fallback, cache)
    return DynamicModel(source, device, lengths, ladder, background=background, most_loaded=most_loaded, tenant=tenant)
