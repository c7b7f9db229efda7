"""Defines ``caesura info``, which shows what an image, a model or a machine holds."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from caesura import api
from caesura.commands.options import Dim, Fallback, Json, Set, is_image, sizes_of
from caesura.latency import latency_fields, latency_table
from caesura.machines import machine_of
from caesura.views import (
    Progress,
    graph_fields,
    image_fields,
    json_text,
    params_fields,
    point_fields,
    points_summary,
    points_table,
    show_graph,
    show_image,
    show_params,
    tell,
    write,
)
from hw.contract.params import PRESETS
from hw.image import Image


def info(
    target: Annotated[str, typer.Argument(help="an image, an ONNX model, a preset, or a TOML file of parameters")],
    changes: Set = None,
    as_json: Json = False,
    fallback: Fallback = False,
    dim: Dim = None,
    points: Annotated[bool, typer.Option("--points", help="list an image's cancellation points")] = False,
) -> None:
    """Show what an image, a model or a machine holds."""
    path, params = Path(target), machine_of(target, changes or ())
    if params is not None:
        result, plain = show_params(params), params_fields(params)
    elif changes:
        raise api.UsageError(f"{target}: --set changes a preset or a TOML file of parameters, and this is neither")
    elif is_image(path):
        image = Image.load(path)
        listed = [points_table(image)] if points else []
        result = Group(show_image(image), *listed, points_summary(image), latency_table(image))
        plain = {**image_fields(image), "cancellation": point_fields(image), "latency": latency_fields(image)}
    elif path.exists():
        from compiler import import_model  # after the check, as it loads onnx

        with Progress() as progress:
            progress.task(f"reading {path.name}")
            graph = import_model(path, fallback=fallback, sizes=sizes_of(dim or ()))
        result, plain = show_graph(graph), graph_fields(graph)
    else:
        raise api.UsageError(f"{target}: no such file, and no preset of that name; presets are {', '.join(PRESETS)}")
    if as_json:
        write(json_text(plain))
    else:
        tell(result)
