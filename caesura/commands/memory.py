"""Defines ``caesura memory``, which tells how much LV2 a model needs and what less of it costs."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from caesura import api
from caesura.commands.options import Json, Page
from caesura.compilation import Compilation, compile_file, lv2_limit, takes_compilation
from caesura.model_cycles import ModelTraffic, model_traffic
from caesura.views import Column, ColumnTable, Progress, json_text, say, tell, write
from compiler import CompileError, MemoryStudy, import_model, memory_study
from hw.contract.params import SocParams

_PARTS = (1, 2, 4, 8, 16)  #: of all LV2 are the sizes of the curve, unless they are told
_MOST = 4  #: tensors that are named
_BAR = 24  #: characters of the longest bar


def _bytes(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"


_ORDERS = (
    Column("name", "order"),
    Column("peak", "bytes alive at a time", number=True, text=_bytes),
    Column("lv2", "least LV2 without spill", number=True, text=_bytes),
    Column("layer", "peak at"),
)
_CURVE = (
    Column("lv2", "LV2 bytes", number=True, text=_bytes),
    Column("moved", "DRAM bytes", number=True, text=_bytes),
    Column("cycles", number=True, text=_bytes),
    Column("bar", "DRAM bytes as a bar"),
)


@takes_compilation
def memory(
    model: Annotated[Path, typer.Argument(help="an ONNX model")],
    compilation: Compilation,
    curve: Annotated[bool, typer.Option("--curve", help="compile for parts of LV2 and show what each costs")] = False,
    sizes: Annotated[
        str | None, typer.Option("--sizes", help="bytes of LV2 of the curve, such as 128KiB,256KiB (default: parts)")
    ] = None,
    page: Page = None,
    as_json: Json = False,
) -> None:
    """Tell how much LV2 a model needs, by the order of its layers, and what less of it costs."""
    _check(model, compilation)
    params = compilation.machine() or api.resolve("tiny")
    engines = params.engines if compilation.engines in (None, "auto") else int(compilation.engines)
    compilation = replace(compilation, engines=engines)
    measured = _sizes(sizes, params) if curve or sizes else []
    with Progress() as progress:
        progress.task(f"orders of the layers of {model.name}")
        graph = import_model(
            model, fallback=compilation.fallback, sizes=compilation.sizes, batch=compilation.batch or 1,
            sequences=compilation.sequences,
        )  # fmt: skip
        study = memory_study(graph, params, replace(compilation.options, engines=engines))
        points = []
        for size in measured:
            progress.task(f"compiling {model.name} for {size:,} bytes of LV2")
            points.append((size, _traffic(model, compilation, size)))
    most = max((traffic.moved for _, traffic in points if traffic), default=0)
    rows = [_row(size, traffic, most) for size, traffic in points]
    drawn = ColumnTable("DRAM bytes and cycles of an inference by LV2", _CURVE, rows) if points else None
    orders = ColumnTable(f"LV2 for {graph.name} on {params.name}", _ORDERS, [asdict(one) for one in study.orders])
    notes = [_proof(study), _alive(study)]
    if page:
        from caesura.views import write_memory_page  # loads the plotting library

        known = [(size, traffic.moved, traffic.cycles) for size, traffic in points if traffic]
        write_memory_page(page, orders, notes, drawn.without("bar") if drawn else None, known)
    if as_json:
        write(json_text(_fields(graph.name, study, points)))
        return
    tell(orders.rich())
    for note in notes:
        say(note)
    if drawn:
        tell(drawn.rich())


def _check(model: Path, compilation: Compilation) -> None:
    """Raise :class:`caesura.api.UsageError` for what says nothing about any order."""
    if model.suffix == ".cimg":
        raise api.UsageError(f"{model}: its layers have their order already: give the ONNX model it was compiled from")
    if compilation.plan:
        raise api.UsageError(f"--from-plan {compilation.plan}: a plan has one order: leave it out")
    if compilation.options.lv2_limit is not None:
        raise api.UsageError("--lv2-limit: the least is what is asked for; --sizes says at which the curve is drawn")


def _sizes(text: str | None, params: SocParams) -> list[int]:
    """Return the sizes of the curve, ascending. Raises :class:`caesura.api.UsageError`."""
    if text is None:
        return sorted(params.lv2_bytes // part for part in _PARTS)
    found = [lv2_limit(one) for one in text.split(",")]
    return sorted({params.lv2_bytes if isinstance(one, str) else one for one in found})


def _traffic(model: Path, compilation: Compilation, size: int) -> ModelTraffic | None:
    """Return what an inference costs in ``size`` bytes of LV2; None where the model does not fit."""
    options = replace(compilation.options, lv2_limit=size)
    try:
        return model_traffic(compile_file(model, replace(compilation, options=options)).image)
    except CompileError:
        return None


def _row(size: int, traffic: ModelTraffic | None, most: int) -> dict[str, Any]:
    if traffic is None:
        return {"lv2": size, "moved": None, "cycles": None, "bar": "does not fit"}
    bar = "█" * round(_BAR * traffic.moved / max(1, most))
    return {"lv2": size, "moved": traffic.moved, "cycles": traffic.cycles, "bar": bar}


def _fields(name: str, study: MemoryStudy, points: list[tuple[int, ModelTraffic | None]]) -> dict[str, Any]:
    curve = [{"lv2": size, **(asdict(one) if one else {"moved": None, "cycles": None})} for size, one in points]
    orders = [asdict(one) for one in study.orders]
    return {"model": name, "orders": orders, "bound": study.bound, "proved": study.proved, "curve": curve}


def _proof(study: MemoryStudy) -> str:
    if study.proved:
        return f"no order has fewer than {study.bound:,} bytes alive at a time"
    return (
        f"no order has fewer than {study.bound:,} bytes alive at a time; whether one has fewer than least is not known"
    )


def _alive(study: MemoryStudy) -> str:
    least = study.least
    if not least.alive:
        return "no tensor lies in LV2"
    named = ", ".join(f"{name} {size:,}" for name, size in least.alive[:_MOST])
    more = f" and {len(least.alive) - _MOST} more" if len(least.alive) > _MOST else ""
    return f"alive at {least.layer} in the least order: {named}{more}"
