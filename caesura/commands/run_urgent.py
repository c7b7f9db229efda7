"""Carries out ``caesura run --urgent``."""

from pathlib import Path

import typer

from caesura import api, samples as inputs
from caesura.commands.options import chosen_backend, is_image
from caesura.compilation import Compilation, image_of
from caesura.image_files import image_for
from caesura.views import Progress, compiling, json_text, tell, write
from hw.image import Image
from sim import write_trace


def run_with_urgent(
    model: Path, urgent: Path, compilation: Compilation, *, at: int | None, every: int | None, input: Path | None,
    seed: int, output: Path | None, backend: str | None, as_json: bool, trace: Path | None, keep_weights: bool,
) -> None:  # fmt: skip
    """Run ``model``, and ``urgent`` that arrives meanwhile, and print how both fared; exit code 1 if outputs differ."""
    from caesura.scenario import run_urgent, urgent_fields, urgent_tables  # loaded where they are used

    long = image_of(model, compilation)
    short = _image_beside(urgent, long, compilation)
    sample = inputs.load_samples(input, long, 1)[0] if input else inputs.random_samples(long, 1, seed)[0]
    backend = chosen_backend(backend, long.params)
    with Progress() as progress, api.open(long.params, backend, progress=progress.cycles) as device:
        models = [device.load(image, keep_weights=keep_weights) for image in (long, short)]
        found = run_urgent(
            device, models[0], models[1], sample, inputs.random_samples(short, 1, seed)[0], at=at, every=every,
            told=progress.task,
        )  # fmt: skip
    if trace:
        write_trace(trace, found.preempting.spans)
    if output:
        inputs.save_outputs(output, [found.outputs])
    names = long.meta.model, short.meta.model
    if as_json:
        write(json_text(urgent_fields(found, names, long.params, backend)))
    else:
        tell(urgent_tables(found, names, long.params, backend))
    if not found.equal:
        raise typer.Exit(1)


def _image_beside(urgent: Path, long: Image, compilation: Compilation) -> Image:
    """Return the image of ``urgent`` for the machine of ``long``. Flags that speak of one model, of its sizes and its
    plan, are those of the long one. Raises :class:`caesura.api.UsageError` for a model that needs some of its own."""
    from compiler import OpenDimension

    if is_image(urgent):
        return image_for(urgent, long.params)
    with Progress() as progress:
        progress.task(compiling(urgent, long.params))
        try:
            return api.compile(
                urgent, long.params, engines=compilation.engines, fallback=compilation.fallback,
                options=compilation.options, jobs=compilation.jobs, cache=compilation.cache,
            )  # fmt: skip
        except OpenDimension as error:
            raise api.UsageError(
                f"{error.told(None)}; --dim is for {long.meta.model}: compile {urgent} by itself, and give --urgent "
                "the image (.cimg)"
            ) from None
