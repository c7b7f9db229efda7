"""Carries out ``caesura run`` for a model whose inputs vary in length."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from caesura import api, samples as inputs
from caesura.commands.options import chosen_backend
from caesura.compilation import Compilation
from caesura.views import Column, ColumnTable, Progress, json_text, say, tell, write
from hw.contract.params import preset

_COLUMNS = (
    Column("sample", number=True),
    Column("length", number=True),
    Column("how", "served"),
    Column("kernel_length", "kernel", number=True),
    Column("cycles", number=True),
    Column("latency_cycles", "latency", number=True),
    Column("check"),
)


def varies(model: Path, compilation: Compilation) -> bool:
    """Return whether a model file has a dynamic dimension behind the first of its inputs whose size nobody named."""
    from compiler import CompileError, DynamicDimension  # loaded where they are used

    if compilation.sizes or compilation.plan:
        return False
    try:
        DynamicDimension.of(model)
    except CompileError:
        return False  # what is wrong is told where the model is compiled
    return True


def run_varying(
    model: Path,
    compilation: Compilation,
    data: Path,
    *,
    kernels: Path | None,
    samples: int | None,
    output: Path | None,
    backend: str | None,
    check: bool,
    as_json: bool,
) -> None:
    """Run all samples of a file, or the first ``samples``, each by the kernel for its length, and print how each was
    served; exit code 1 if ``check`` finds that outputs differ from onnxruntime's."""
    from caesura.lengths import dynamic, dynamic_ports
    from compiler import DynamicDimension

    dimension = DynamicDimension.of(model)
    axes = dict(dimension.axes)
    given = inputs.samples_of(data, dynamic_ports(dimension), samples, axes)
    if not given:
        raise api.UsageError(f"{data}: holds no sample")
    name, axis = dimension.axes[0]
    lengths = [sample[name].shape[axis] for sample in given]
    params = compilation.machine() or preset("tiny")
    backend = chosen_backend(backend, params)
    engines = compilation.engines if isinstance(compilation.engines, int) else None
    rows, outputs = list[dict[str, Any]](), list[inputs.Sample]()
    with Progress() as progress, api.open(params, backend, progress=progress.cycles) as device:
        with dynamic(
            model, device, range(min(lengths), max(lengths) + 1), ladder=(), engines=engines,
            fallback=compilation.fallback, options=compilation.options, cache=compilation.cache, kernels=kernels,
        ) as served:  # fmt: skip
            for number, sample in enumerate(given):
                progress.task(f"sample {number + 1} of {len(given)}, length {lengths[number]}")
                found, stats = served.run(sample)
                assert served.last is not None
                told = _checked(dimension, sample, found) if check else None
                rows.append(
                    {"sample": number, "length": served.last.length, "how": served.last.how,
                     "kernel_length": served.last.kernel_length, "cycles": stats.cycles,
                     "latency_cycles": stats.latency, "check": told}
                )  # fmt: skip
                outputs.append(found)
    if output:
        inputs.save_varying(output, outputs)
    _print(rows, f"{dimension.model} on {params.name} ({backend}), inputs: {data}", check=check, as_json=as_json)
    if any(row["check"] not in (None, "equal") for row in rows):
        raise typer.Exit(1)


def _checked(dimension: Any, sample: inputs.Sample, found: api.Arrays) -> str:
    from compiler import golden

    name, axis = dimension.axes[0]
    wanted = golden.golden_outputs(dimension.fixed(sample[name].shape[axis]), sample)
    differ = [name for name, value in wanted.items() if not np.array_equal(value, found[name], equal_nan=True)]
    return f"{', '.join(differ)} differ" if differ else "equal"


def _print(rows: Sequence[dict[str, Any]], head: str, *, check: bool, as_json: bool) -> None:
    table = ColumnTable("", _COLUMNS, rows)
    if as_json:
        write(json_text({"run": head, "samples": table.fields()}))
        return
    say(head)
    tell((table if check else table.without("check")).rich())
