"""Keeps reference durations that first runs have measured (of **Queue-time balancing**) for the next time.

An image has a place for them, but its file is the user's: only ``caesura profile`` writes there. What any other run
measures goes to a file of its own in the cache folder, named after the image's content, the hardware, and the sources
of what measures. What layers are like is kept beside it, for models that have not run yet.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic.dataclasses import dataclass

from hw.contract.params import SocParams
from hw.image import Image, ImageMeta
from sim import RTL_BACKENDS, cache_dir, read_kept, sources_digest, write_kept
from sw.runtime import Durations, MeasuredLayer, PastDurations, reference

_SOURCES = ("hw", "sim")  #: all code that cycles come from
_MOST_MODELS = 30  #: whose files are read for what to expect of others: the newest
_Count = Annotated[int, pydantic.Field(ge=0)]
_Times = tuple[_Count, _Count, _Count]


@dataclass
class _Layer:
    """Describes a layer as ``MeasuredLayer`` does; times are load, compute and stream."""

    kind: str
    macs: _Count
    bytes: _Count
    engines: _Count
    estimated: _Times
    measured: _Times

    @classmethod
    def of(cls, layer: MeasuredLayer) -> "_Layer":
        return cls(layer.kind, layer.macs, layer.bytes, layer.engines, layer.estimated, layer.measured)

    def read(self) -> MeasuredLayer:
        times = Durations(*self.estimated), Durations(*self.measured)
        return MeasuredLayer(self.kind, self.macs, self.bytes, self.engines, *times)


@dataclass
class _Stored:
    """Describes what a file holds. ``tenant``: whose model was measured."""

    model: str
    tenant: str | None
    layers: list[_Layer]


_STORED = pydantic.TypeAdapter(_Stored)
_META = pydantic.TypeAdapter(ImageMeta)
_MEASURED = {"measured_load", "measured_compute", "measured_stream"}


class DurationStore:
    """Keeps durations of one device. ``backend`` is its name; those of the RTL share what they measured, as it is the
    same."""

    def __init__(self, params: SocParams, backend: str) -> None:
        platform = [params.to_dict(), "rtl" if backend in RTL_BACKENDS else backend, sources_digest(*_SOURCES)]
        self._platform = hashlib.sha256(json.dumps(platform, sort_keys=True).encode())
        self._taught: set[str | None] = set()

    def recall(self, image: Image) -> None:
        """Give ``image`` the durations that were measured before, unless it has some."""
        if reference.measured(image):
            return
        with contextlib.suppress(OSError, pydantic.ValidationError):  # missing, or damaged: it will be measured again
            layers = _read(self._path(image)).layers
            if len(layers) == len(image.meta.layers):
                for layer, kept in zip(image.meta.layers, layers, strict=True):
                    layer.measured_load, layer.measured_compute, layer.measured_stream = kept.measured

    def teach(self, past: PastDurations, tenant: str | None) -> None:
        """Tell ``past`` of the layers of other models of ``tenant`` that were measured before; only once."""
        if tenant not in self._taught:
            self._taught.add(tenant)
            for stored in self._newest():
                if stored.tenant == tenant:
                    past.add(layer.read() for layer in stored.layers)

    def remember(self, image: Image, tenant: str | None = None) -> None:
        """Keep the durations of ``image``, a model of ``tenant``. A folder that cannot be written to costs the next run
        a measurement."""
        path = self._path(image)
        stored = _Stored(image.meta.model, tenant, [_Layer.of(layer) for layer in MeasuredLayer.all_of(image)])
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_kept(path, _STORED.dump_json(stored))

    def _newest(self) -> Iterator[_Stored]:
        """Yield what is kept of the models that were measured last, of these the newest last."""
        with contextlib.suppress(OSError):
            files = sorted((entry.stat().st_mtime, entry) for entry in self._folder.iterdir())
            for _, path in files[-_MOST_MODELS:]:
                with contextlib.suppress(OSError, pydantic.ValidationError):
                    yield _read(path)

    @property
    def _folder(self) -> Path:
        return cache_dir() / "durations" / self._platform.hexdigest()[:16]

    def _path(self, image: Image) -> Path:
        digest = hashlib.sha256(_META.dump_json(image.meta, exclude={"layers": {"__all__": _MEASURED}}))
        for part in (image.code, image.weights, *image.host_models):
            digest.update(hashlib.sha256(part).digest())
        return self._folder / f"{digest.hexdigest()[:32]}.json"


def _read(path: Path) -> _Stored:
    return _STORED.validate_json(read_kept(path))
