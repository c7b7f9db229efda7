"""ONNX model to image: front end, then back end."""

from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from compiler.backend.options import Options
from compiler.backend.pipeline import build
from compiler.backend.report import CompileReport
from compiler.frontend import import_model
from compiler.ir import Graph
from hw.contract.image import Image
from hw.contract.params import SocParams


@dataclass
class Compiled:
    """An image, the graph it was made from (for checks), and the report of the compilation."""

    image: Image
    graph: Graph
    report: CompileReport


def compile_with_report(
    path: str | Path | onnx.ModelProto,
    params: SocParams,
    *,
    fallback: bool = False,
    name: str | None = None,
    observe: bool = False,
    engines: int | None = None,
    options: Options | None = None,
) -> Compiled:
    """Compile a quantised ONNX model for hardware with ``params``.

    ``fallback``: nodes the accelerator cannot run become CPU steps. ``observe``: every operator's result also goes to
    DRAM as a tensor of the image. ``engines``: how many engines of the device share each layer, by default what
    ``options`` says. Raises :class:`compiler.ir.CompileError`.
    """
    chosen = options or Options()
    chosen = replace(chosen, observe=observe or chosen.observe, engines=chosen.engines if engines is None else engines)
    graph = import_model(path, fallback=fallback, name=name)
    image, report = build(graph, params, chosen)
    return Compiled(image, graph, report)


def compile_model(
    path: str | Path | onnx.ModelProto,
    params: SocParams,
    *,
    fallback: bool = False,
    name: str | None = None,
    observe: bool = False,
    engines: int | None = None,
    options: Options | None = None,
) -> Image:
    """The image alone; see :func:`compile_with_report`."""
    return compile_with_report(
        path, params, fallback=fallback, name=name, observe=observe, engines=engines, options=options
    ).image
