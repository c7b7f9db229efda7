"""``caesura demo``: runs an example that comes with Caesura."""

import enum
import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from caesura.api import UsageError


class _Example(enum.StrEnum):
    """Names the examples that ``caesura demo`` runs."""

    DIGITS = "digits"
    ENCODER = "encoder"
    DRIVING = "driving"
    SCENARIO = "scenario"


def demo(
    context: typer.Context,
    name: Annotated[_Example, typer.Argument(help="the example")],
) -> None:
    """Run an example: digits and encoder classify, driving preempts, scenario serves two networks of an accelerator.

    What follows the name goes to the example: caesura demo digits --samples 4."""
    folder = _examples()
    if name is _Example.SCENARIO:
        context.find_root().command(["scenario", str(folder / "scenarios" / "driving.toml"), *context.args])
        return
    example = importlib.import_module(f"examples.{name}.demo")
    sys.argv = [f"caesura demo {name}", *context.args]  # the example reads its own options
    raise typer.Exit(example.main())


def _examples() -> Path:
    """Return the folder of the examples. Raises :class:`UsageError` where it was not installed."""
    try:
        found = importlib.import_module("examples.digits")
    except ModuleNotFoundError as error:
        raise UsageError(f"caesura demo needs the examples, which are not installed ({error})") from None
    return Path(str(found.__file__)).parents[1]
