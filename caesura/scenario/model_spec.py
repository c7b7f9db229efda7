"""Describes the models of a scenario file: where each comes from, how it is compiled, and where it runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from caesura.api import options_of
from caesura.scenario.file_table import MOST, Count, FileTable, NotNegative

#: What decides how a model is compiled, which its image, or its plan, has decided already.
_COMPILED = (
    "engines",
    "placed",
    "lv2_limit",
    "fallback",
    "batch",
    "sizes",
    "options",
    "dimension",
    "kernels",
    "plan",
    "sequences",
)
#: What an option of the compiler is called in ``options``, and what says it instead.
_SAID_ELSEWHERE = {
    "engines": "the model's key engines",
    "placed": "the model's key placed",
    "lv2_limit": "the model's key lv2_limit",
    "observe": "only checks of the compiler",
}
_MOST_COPIES = 64


def _checked_engines(value: Any) -> Any:
    """Return what ``engines`` says, if it is one of its three forms."""
    numbers = value if isinstance(value, list | tuple) else [value]
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
    listed = isinstance(value, list | tuple)
    if value == "auto" or (whole and (min(numbers, default=-1) >= 0 if listed else value >= 1)):
        if listed and len(set(value)) < len(value):
            raise ValueError(f"names an engine twice: {list(value)}; its parts run side by side, so name each once")
        return value
    raise ValueError('must be a number of engines from 1 on, a list of their numbers such as [0, 1], or "auto"')


def _several(value: Any) -> Any:
    """Return a list of files; one file stands for itself."""
    return value if isinstance(value, list | tuple) else [value]


def _below(path: Path) -> Path:
    """Return a folder for results, if it lies below that of the scenario."""
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{str(path)!r} must be a folder below the scenario's own, such as 'out'; results go there")
    return path


Engines = Annotated[int | list[int] | Literal["auto"], pydantic.PlainValidator(_checked_engines)]


class LayerSpec(FileTable):
    """Describes a layer of a model for the synthetic machine, or ``repeat`` equal ones. Times are in the scenario's
    unit."""

    load: NotNegative = 0.0
    compute: NotNegative
    bytes: Annotated[int, Field(ge=0)] = 0
    repeat: Count = 1
    after: list[int] | None = None  #: layers of this model whose outputs it reads; by default the one before
    block: str | None = None  #: neighbours of one name, and repetitions, are scheduled together


class ModelSpec(FileTable):
    """Describes a model: ``layers`` for the synthetic machine; for the others ``onnx`` (a path), ``image`` (a path of a
    compiled one) or ``workload`` (a name). The keys below are of real models. Paths are relative to the scenario's
    folder.

    ``engines``: how many share each layer, which ones, or ``auto``; by default all, or one where the machine places
    layers. ``placed``: branches run side by side, each layer on the engine that a policy chooses. ``dimension``: the
    dynamic dimension along which streams, or ``inputs``, have lengths; ``kernels``: a library (``.ckl``) that has
    kernels for them, of the model or of its operations. ``inputs``: files whose samples requests take in
    turn; random ones if there are none. ``outputs``: the folder for outputs of each request.
    """

    layers: list[LayerSpec] = Field(default_factory=list)
    onnx: Path | None = None
    image: Path | None = None
    workload: str | None = None
    engines: Engines | None = None
    placed: bool = False
    #: bytes for each copy, or ``all``; an equal share if absent
    lv2_limit: Annotated[int, Field(ge=1)] | Literal["all"] | None = None
    copies: Annotated[int, Field(ge=1, le=_MOST_COPIES)] | None = None  #: loads; once, or up to twice in a closed loop
    fallback: bool = False  #: run on the CPU what the accelerator cannot run
    keep_weights: bool = False  #: weights that an inference finds in LV2 are not loaded again
    batch: Count | None = None  #: of a model whose first dimension is dynamic
    sizes: dict[str, Count] = Field(default_factory=dict)  #: of dynamic dimensions that stay the same, by name
    sequences: Count | None = None  #: of a model that keeps a state: conversations that share a step
    dimension: str | None = None
    kernels: Path | None = None
    plan: Path | None = None  #: a plan of the model, by which it is compiled
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)  #: of the compiler, by name
    inputs: Annotated[list[Path], pydantic.BeforeValidator(_several)] = Field(default_factory=list)
    outputs: Annotated[Path, pydantic.AfterValidator(_below)] | None = None

    @pydantic.model_validator(mode="after")
    def _has_one_content(self) -> "ModelSpec":
        given = [name for name in ("onnx", "image", "workload") if getattr(self, name) is not None]
        if not self.layers and not given:
            raise ValueError("describes nothing; give layers, onnx, image or workload")
        if len(given) > 1:
            raise ValueError(f"has {' and '.join(given)}, which are the same thing; remove one")
        if not given and (odd := self.given(_REAL)):
            raise ValueError(f"has {', '.join(odd)} and only layers with durations; give onnx, image or workload")
        return self

    @pydantic.model_validator(mode="after")
    def _is_compiled_one_way(self) -> "ModelSpec":
        fixed = [name for name in _COMPILED if not (name == "engines" and isinstance(self.engines, list))]
        if self.image is not None and (odd := self.given(fixed)):
            raise ValueError(
                f"has an image, which is compiled already, and {', '.join(odd)}; give onnx, or remove them"
            )
        if self.onnx is not None and self.onnx.suffix == ".cimg":
            raise ValueError(f"has onnx = {str(self.onnx)!r}, which is a compiled image; write image = instead")
        fixed = [name for name in fixed if name not in ("plan", "fallback", "batch", "sizes", "sequences")]
        if self.plan is not None and (odd := self.given(fixed)):
            raise ValueError(f"has a plan, which says all about compiling, and {', '.join(odd)}; remove them")
        if self.engines is not None and self.placed:
            raise ValueError("is placed on all engines of the machine, and has engines; remove one")
        if self.dimension is not None and (odd := self.given(("placed", "plan", "batch", "sizes", "sequences"))):
            raise ValueError(f"has a dynamic dimension, which these are not for: {', '.join(odd)}; remove one")
        if self.kernels is not None and self.dimension is None:
            raise ValueError("has kernels, which are for lengths, and no dimension; name the one that varies")
        if self.dimension is not None and self.engines == "auto":
            raise ValueError('has a dynamic dimension, and engines = "auto", which is for one size; give a number')
        if odd := [name for name in self.options if name in _SAID_ELSEWHERE]:
            raise ValueError(f"has options {', '.join(odd)}; {_SAID_ELSEWHERE[odd[0]]} say that, so remove it")
        options_of(self.options)
        return self

    @pydantic.model_validator(mode="after")
    def _has_layers_in_order(self) -> "ModelSpec":
        if (count := sum(layer.repeat for layer in self.layers)) > MOST:
            raise ValueError(f"has {count:,} layers with repetitions, {MOST:,} at most; repeat fewer")
        for number, after in enumerate(self.dependencies):
            for other in after:
                if not 0 <= other < number:
                    raise ValueError(f"layer {number} comes after {other}, which is not an earlier layer; reorder them")
        return self

    def given(self, names: Sequence[str]) -> list[str]:
        """Return those of the keys ``names`` whose values are not their defaults."""
        fields = type(self).model_fields
        return [name for name in names if getattr(self, name) != fields[name].get_default(call_default_factory=True)]

    @property
    def flat_layers(self) -> list[LayerSpec]:
        """Return ``layers`` with repetitions written out."""
        return [layer for layer in self.layers for _ in range(layer.repeat)]

    @property
    def dependencies(self) -> list[tuple[int, ...]]:
        """Return of each of :attr:`flat_layers` the earlier layers that it reads."""
        return [
            tuple(layer.after) if layer.after is not None else ((number - 1,) if number else ())
            for number, layer in enumerate(self.flat_layers)
        ]


_REAL = tuple(name for name in ModelSpec.model_fields if name not in ("layers", "onnx", "image", "workload"))
