"""Carries out ``caesura run`` for a model whose inputs vary in length."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
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
    from caesura.lengths import by_operation, dynamic, dynamic_ports, is_of_operations
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
    by_parts = kernels is not None and is_of_operations(kernels)
    with Progress() as progress, api.open(params, backend, progress=progress.cycles) as device:
        served: Any
        if by_parts:
            assert kernels is not None
            served = by_operation(
                model, device, kernels=kernels, engines=engines, fallback=compilation.fallback,
                options=compilation.options,
            )  # fmt: skip
        else:
            served = dynamic(
                model, device, range(min(lengths), max(lengths) + 1), ladder=(), engines=engines,
                fallback=compilation.fallback, options=compilation.options, cache=compilation.cache, kernels=kernels,
            )  # fmt: skip
        with served:
            for number, sample in enumerate(given):
                progress.task(f"sample {number + 1} of {len(given)}, length {lengths[number]}")
                found, row = _by_operation(served, sample) if by_parts else _whole(served, sample)
                told = (_checked_parts if by_parts else _checked)(dimension, sample, found) if check else None
                rows.append({"sample": number, "length": lengths[number], **row, "check": told})
                outputs.append(found)
    if output:
        inputs.save_varying(output, outputs)
    head = f"{dimension.model} on {params.name} ({backend}), inputs: {data}"
    _print(rows, head, check=check, as_json=as_json, by_parts=by_parts)
    if any(row["check"] not in (None, "equal") for row in rows):
        raise typer.Exit(1)


def _whole(served: Any, sample: inputs.Sample) -> tuple[api.Arrays, dict[str, Any]]:
    """Run a sample by a kernel for the whole model; return outputs, and how it was served."""
    found, stats = served.run(sample)
    how, length = served.last.how, served.last.kernel_length
    return found, {"how": how, "kernel_length": length, "cycles": stats.cycles, "latency_cycles": stats.latency}


def _by_operation(served: Any, sample: inputs.Sample) -> tuple[api.Arrays, dict[str, Any]]:
    """Run a sample by a kernel for each operation; return outputs, and how they were served."""
    found = served.run(sample)
    counts = Counter(each.how for each in served.last)
    return found, {
        "how": ", ".join(f"{count} {how}" for how, count in sorted(counts.items())),
        "latency_cycles": sum(each.cycles or 0 for each in served.last),
        "operations": [asdict(each) for each in served.last],
    }


def _checked_parts(dimension: Any, sample: inputs.Sample, found: api.Arrays) -> str:
    """Compare with the whole model as the reference computes it, each operator of which is held against
    onnxruntime."""
    from compiler import golden, import_model, reference

    name, axis = dimension.axes[0]
    graph = import_model(dimension.fixed(sample[name].shape[axis]), fallback=True)
    values = reference.run_all(graph, sample)
    checks = [golden.check_layer(graph, op, values, values[op.output]) for op in graph.ops if golden.judged(graph, op)]
    wanted = {port.name: reference.from_memory(port, values[port.tensor], graph) for port in graph.outputs}
    differ = [name for name, value in wanted.items() if not np.array_equal(value, found[name], equal_nan=True)]
    differ += [check.name for check in checks if not check.ok]
    return f"{', '.join(differ)} differ" if differ else "equal"


def _checked(dimension: Any, sample: inputs.Sample, found: api.Arrays) -> str:
    from compiler import golden

    name, axis = dimension.axes[0]
    wanted = golden.golden_outputs(dimension.fixed(sample[name].shape[axis]), sample)
    differ = [name for name, value in wanted.items() if not np.array_equal(value, found[name], equal_nan=True)]
    return f"{', '.join(differ)} differ" if differ else "equal"


def _print(rows: Sequence[dict[str, Any]], head: str, *, check: bool, as_json: bool, by_parts: bool) -> None:
    table = ColumnTable("", _COLUMNS, rows)
    if by_parts:  # operations have cycles of their own
        table = table.without("kernel_length", "cycles")
        if as_json:
            table = replace(table, columns=[*table.columns, Column("operations")])
    if as_json:
        write(json_text({"run": head, "samples": table.fields()}))
        return
    say(head)
    tell((table if check else table.without("check")).rich())
