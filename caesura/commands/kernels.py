"""Defines ``caesura kernels``, which builds kernel libraries and shows what is in them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from caesura.api import UsageError
from caesura.commands.options import Json, check_writable
from caesura.compilation import Compilation, takes_compilation
from caesura.views import Column, ColumnTable, Progress, json_text, line, say, tell, write
from hw.contract.params import preset
from hw.image import Image, KernelArchive, attributes_of
from sw.kernels import KernelDemand, KernelLibrary, LibraryKernel, NoKernelError

Library = Annotated[Path, typer.Argument(help="a kernel library (.ckl)")]

kernels = typer.Typer(help="Build kernel libraries of models whose inputs vary in length, and look into them.")

_COLUMNS = (
    Column("covers", "length"),
    Column("form"),
    Column("lengths", number=True),
    Column("stretches", number=True),
    Column("instructions", number=True),
    Column("preset"),
)


@kernels.command()
@takes_compilation
def build(
    model: Annotated[Path, typer.Argument(help="an ONNX model with a dynamic dimension")],
    compilation: Compilation,
    lengths: Annotated[str, typer.Option(help="first and last length, such as 1:512; 16:512:16 in steps")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the library to write (.ckl)")],
    exact: Annotated[str, typer.Option(help="lengths with kernels of their own, such as 64,128")] = "",
    dimension: Annotated[
        str | None, typer.Option(help="name of the dynamic dimension, if inputs have several behind the first")
    ] = None,
) -> None:
    """Build a library with a kernel for a range of lengths."""
    from caesura.lengths import source_of  # loaded where the compiler is used

    check_writable(output)
    if output.suffix != ".ckl":
        raise UsageError(f"--output {output}: must be a .ckl file")
    if compilation.plan or compilation.batch or compilation.sizes:
        raise UsageError("a library is of one dynamic dimension: leave --from-plan, --batch and --dim out")
    covered, own = _range(lengths), _numbers(exact)
    if outside := [length for length in own if length not in covered]:
        raise UsageError(f"--exact {outside[0]}: is not among the lengths {lengths}")
    if compilation.engines == "auto":
        raise UsageError("--engines auto is for models of one size: name a number")
    params = compilation.machine() or preset("tiny")
    source = source_of(
        model, params, dimension=dimension, engines=compilation.engines or params.engines,
        fallback=compilation.fallback, options=compilation.options, cache=compilation.cache,
    )  # fmt: skip
    demand = source.demand()
    with Progress() as progress:
        done = 0

        def told(length: int, begins: bool) -> None:
            nonlocal done
            done += 1
            progress.task(f"compiling length {length}, {done} of {len(covered)}")

        progress.task(f"reading {model.name}")
        made = [source.make_range(demand, covered, told)] if len(covered) > 1 else []
        for length in own if made else [covered[0]]:
            progress.task(f"compiling length {length} by itself")
            made.append(source.make(demand, length))
    archive = KernelArchive(tuple(kernel.content for kernel in made))
    output.write_bytes(archive.to_bytes())
    say(f"{output}: {len(archive.kernels)} kernels of {demand.operation!r} for {params.name!r}, {_size(output)} bytes")


@kernels.command(name="list")
def list_kernels(library: Library, as_json: Json = False) -> None:
    """List the kernels of a library."""
    archive = KernelArchive.load(library)
    table = ColumnTable("", _COLUMNS, [_row(kernel) for kernel in archive.kernels])
    if as_json:
        write(json_text({"library": str(library), "kernels": table.fields()}))
    else:
        say(f"{library}: {len(archive.kernels)} kernels, {_size(library)} bytes")
        tell(table.rich())


@kernels.command()
def match(
    library: Library,
    length: Annotated[int, typer.Option("--len", help="the length to find a kernel for")],
    as_json: Json = False,
) -> None:
    """Say which kernel of a library a length gets, and why; exit code 1 if none."""
    archive = KernelArchive.load(library)
    named = [LibraryKernel(library.stem, attributes_of(kernel), kernel) for kernel in archive.kernels]
    if not named:
        raise UsageError(f"{library}: the library is empty")
    about = named[0].attributes
    demand = KernelDemand(library.stem, about.class_1, about.parameter)
    try:
        found = KernelLibrary(named).match(demand, length)
    except NoKernelError as error:
        say(str(error))
        raise typer.Exit(1) from None
    listed = isinstance(found.content, Image) or length in found.content
    why = _why(found, [each for each in named if each.attributes.key == about.key], length)
    if as_json:
        write(json_text({"length": length, "kernel": _row(found.content), "why": why, "listed": listed}))
    else:
        tell(line(f"length {length}: kernel for {found.attributes.covered.written()}: {why}"))
    if not listed:
        say(f"length {length}: is between those that the kernel was built for; a call compiles one of its own")
        raise typer.Exit(1)


def _why(found: LibraryKernel, others: Sequence[LibraryKernel], length: int) -> str:
    covered = found.attributes.covered
    if covered.exact:
        return "it is of exactly this length, which beats any range"
    also = [each for each in others if each is not found and each.attributes.covered.distance(length) == 0]
    return "it is the narrowest range that covers it" if also else "it is the only one that covers it"


def _row(kernel: Any) -> dict[str, Any]:
    attributes, whole = attributes_of(kernel), isinstance(kernel, Image)
    first = kernel if whole else kernel.image(kernel.lengths[0])
    return {
        "covers": str(attributes.covered.written()),
        "form": "exact" if whole else "range",
        "lengths": 1 if whole else len(kernel.lengths),
        "stretches": 1 if whole else len(kernel.stretches),
        "instructions": len(first.code) // 64,
        "preset": str(first.meta.params["name"]),
    }


def _size(path: Path) -> str:
    return f"{path.stat().st_size:,}"


def _range(text: str) -> range:
    found = re.fullmatch(r"(\d{1,7}):(\d{1,7})(?::(\d{1,7}))?", text.strip(), re.ASCII)
    numbers = [int(number) for number in found.groups("1")] if found else [0]
    if not all(numbers) or not range(numbers[0], numbers[1] + 1, numbers[2]):
        raise UsageError(f"--lengths must be first:last or first:last:step, such as 1:512, not {text!r}")
    return range(numbers[0], numbers[1] + 1, numbers[2])


def _numbers(text: str) -> list[int]:
    if not re.fullmatch(r"(\d{1,7}(,\d{1,7})*)?", text.strip(), re.ASCII):
        raise UsageError(f"--exact must be lengths such as 64,128, not {text!r}")
    return sorted({int(number) for number in text.split(",") if number.strip()})
