"""Keeps reference durations that first runs have measured (of **Queue-time balancing**) for the next time.

An image has a place for them, but its file is the user's: only ``caesura profile`` writes there. What any other run
measures goes to a file of its own in the cache folder, named after the image's content, the hardware, and the sources
of what measures.
"""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic.dataclasses import dataclass

from hw.contract.params import SocParams
from hw.image import Image, ImageMeta
from sim import RTL_BACKENDS, cache_dir, read_kept, sources_digest, write_kept
from sw.runtime import reference

_SOURCES = ("hw", "sim")  #: all code that cycles come from
_Cycles = Annotated[int, pydantic.Field(ge=0)]


@dataclass
class _Stored:
    """Describes what a file holds: load, compute and stream of each layer."""

    model: str
    layers: list[tuple[_Cycles, _Cycles, _Cycles]]


_STORED = pydantic.TypeAdapter(_Stored)
_META = pydantic.TypeAdapter(ImageMeta)
_MEASURED = {"measured_load", "measured_compute", "measured_stream"}


class DurationStore:
    """Keeps durations of one device. ``backend`` is its name; those of the RTL share what they measured, as it is the
    same."""

    def __init__(self, params: SocParams, backend: str) -> None:
        platform = [params.to_dict(), "rtl" if backend in RTL_BACKENDS else backend, sources_digest(*_SOURCES)]
        self._platform = json.dumps(platform, sort_keys=True)

    def recall(self, image: Image) -> None:
        """Give ``image`` the durations that were measured before, unless it has some."""
        if reference.measured(image):
            return
        with contextlib.suppress(OSError, pydantic.ValidationError):  # missing, or damaged: it will be measured again
            times = _STORED.validate_json(read_kept(self._path(image))).layers
            if len(times) == len(image.meta.layers):
                for layer, took in zip(image.meta.layers, times, strict=True):
                    layer.measured_load, layer.measured_compute, layer.measured_stream = took

    def remember(self, image: Image) -> None:
        """Keep the durations of ``image``. A folder that cannot be written to costs the next run a measurement."""
        path = self._path(image)
        layers = [(each.measured_load, each.measured_compute, each.measured_stream) for each in image.meta.layers]
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_kept(path, json.dumps({"model": image.meta.model, "layers": layers}).encode())

    def _path(self, image: Image) -> Path:
        meta = _META.dump_json(image.meta, exclude={"layers": {"__all__": _MEASURED}})
        digest = hashlib.sha256(self._platform.encode() + meta)
        for part in (image.code, image.weights, *image.host_models):
            digest.update(hashlib.sha256(part).digest())
        return cache_dir() / "durations" / f"{digest.hexdigest()[:32]}.json"
