"""Defines ``caesura retime``, which runs a model under another DRAM, or with other units."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.compilation import Compilation, image_of, takes_compilation
from caesura.json_form import json_text
from caesura.options import Json
from caesura.progress import Progress
from caesura.terminal import tell, write
from sim.cost import inference


@takes_compilation
def retime(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    compilation: Compilation,
    change: Annotated[
        list[str] | None,
        typer.Option(help="such as dram_latency=200 or dram_bandwidth=50,mac=0.5; repeatable, a run each"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a model on the fast model as it is, and with another DRAM or with other units; tell what each takes."""
    from caesura import retime as retiming

    image = image_of(model, compilation)
    with Progress() as progress:
        variations = retiming.retime(
            image,
            change or (),
            progress=progress.cycles,
            told=lambda what: progress.task(f"running {what}", cycle=0, expected=inference(image.meta.layers).in_turn),
        )
    if as_json:
        write(json_text(retiming.to_fields(image, variations)))
    else:
        tell(retiming.to_table(image, variations))
