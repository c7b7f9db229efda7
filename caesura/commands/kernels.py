"""Defines ``caesura kernels``, which builds kernel libraries and shows what is in them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caesura.api import UsageError
from caesura.commands.options import Json, check_writable
from caesura.compilation import Compilation, takes_compilation
from caesura.views import Column, ColumnTable, Progress, json_text, line, say, tell, write
from hw.contract.params import preset
from hw.image import Image, KernelArchive, ValueRange, attributes_of
from sw.kernels import KernelDemand, KernelLibrary, LibraryKernel, NoKernelError, kernel_name

if TYPE_CHECKING:
    from caesura.lengths.kernel_source import KernelSource

Library = Annotated[Path, typer.Argument(help="a kernel library (.ckl)")]

kernels = typer.Typer(help="Build kernel libraries of models whose inputs vary in length, and look into them.")

_COLUMNS = (
    Column("operator"),
    Column("heads", number=True),
    Column("head_size", "head size", number=True),
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
    operations: Annotated[
        bool, typer.Option("--operations", help="kernels for each operation, in place of some for the whole model")
    ] = False,
    buckets: Annotated[
        int, typer.Option(min=0, help="with --operations: kernels that serve so many lengths each, by one image")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Build a library with a kernel for a range of lengths."""
    from caesura.lengths import OperationDemands, make_bucket, source_of  # loaded where the compiler is used

    check_writable(output)
    if output.suffix != ".ckl":
        raise UsageError(f"--output {output}: must be a .ckl file")
    if compilation.plan or compilation.batch or compilation.sizes:
        raise UsageError("a library is of one dynamic dimension: leave --from-plan, --batch and --dim out")
    covered, own = _range(lengths), _numbers(exact)
    if outside := [length for length in own if length not in covered]:
        raise UsageError(f"--exact {outside[0]}: is not among the lengths {lengths}")
    if buckets and (not operations or covered.step != 1):
        raise UsageError("--buckets is for --operations, and lengths without a step")
    if compilation.engines == "auto":
        raise UsageError("--engines auto is for models of one size: name a number")
    params = compilation.machine() or preset("tiny")
    source = source_of(
        model, params, dimension=dimension, engines=compilation.engines or params.engines,
        fallback=compilation.fallback, options=compilation.options, cache=compilation.cache,
    )  # fmt: skip
    made = list[LibraryKernel]()
    with Progress() as progress:
        progress.task(f"reading {model.name}")
        if not operations:
            made += _kernels_of(source.demand(), source, covered, own, progress)
        for demand, each, operation in OperationDemands(source).different() if operations else ():
            for bucket in _ranges(covered, buckets):
                progress.task(f"{demand.operation}: compiling lengths {bucket.written()}")
                made.append(make_bucket(operation, each, demand, bucket))
            made += _kernels_of(demand, each, covered[:0] if buckets else covered, own, progress)
    archive = KernelArchive(tuple(kernel.content for kernel in made))
    output.write_bytes(archive.to_bytes())
    name = source.dimension.model
    if as_json:
        _write_list(output, archive, model=name, preset=params.name)
        return
    say(f"{output}: {len(archive.kernels)} kernels of {name!r} for {params.name!r}, {_size(output)} bytes")


def _kernels_of(
    demand: KernelDemand, source: "KernelSource", covered: range, own: Sequence[int], progress: Progress
) -> list[LibraryKernel]:
    """Return the kernels of a model, or of an operation of it: one for all lengths, and those for single ones."""
    done = 0

    def told(length: int, begins: bool) -> None:
        nonlocal done
        done += 1
        progress.task(f"{demand.operation}: compiling length {length}, {done} of {len(covered)}")

    made = [source.make_range(demand, covered, told)] if len(covered) > 1 else []
    for length in own if len(covered) != 1 else covered:
        progress.task(f"{demand.operation}: compiling length {length} by itself")
        made.append(source.make(demand, length))
    return made


@kernels.command(name="list")
def list_kernels(library: Library, as_json: Json = False) -> None:
    """List the kernels of a library."""
    archive = KernelArchive.load(library)
    if as_json:
        _write_list(library, archive)
    else:
        say(f"{library}: {len(archive.kernels)} kernels, {_size(library)} bytes")
        tell(_table(archive).rich())


def _table(archive: KernelArchive) -> ColumnTable:
    table = ColumnTable("", _COLUMNS, [_row(kernel) for kernel in archive.kernels])
    if any(row["operator"] for row in table.rows):
        return table
    return table.without("operator", "heads", "head_size")


def _write_list(library: Path, archive: KernelArchive, **about: str) -> None:
    write(json_text({"library": str(library), **about, "kernels": _table(archive).fields()}))


@kernels.command()
def match(
    library: Library,
    length: Annotated[int, typer.Option("--len", help="the length to find a kernel for")],
    as_json: Json = False,
) -> None:
    """Say which kernel of a library a length gets, and why; exit code 1 if none."""
    archive = KernelArchive.load(library)
    if not archive.kernels:
        raise UsageError(f"{library}: the library is empty")
    named = [
        LibraryKernel(kernel_name(attributes_of(kernel).class_1, library.stem), attributes_of(kernel), kernel)
        for kernel in archive.kernels
    ]
    rows, problems = list[dict[str, Any]](), list[str]()
    for alike in _alike(named):
        try:
            found, listed = _matched(alike, length)
        except NoKernelError as error:
            problems.append(str(error))
            continue
        why = _why(found, alike, length)
        if not listed:
            problems.append(
                f"length {length}: is between those that the kernel was built for; a call for the model compiles one"
            )
        rows.append({"length": length, "kernel": _row(found.content), "why": why, "listed": listed})
        if not as_json:
            whose = f"{found.name}, " if "operator" in found.attributes.class_1 else ""
            tell(line(f"{whose}length {length}: kernel for {found.attributes.covered.written()}: {why}"))
    if as_json and rows:
        write(json_text(rows[0] if len(rows) == 1 else {"operations": rows}))
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(1)


def _alike(kernels: Sequence[LibraryKernel]) -> list[list[LibraryKernel]]:
    """Return the kernels by what they are for: the whole model, or each of its operations."""
    found: dict[str, list[LibraryKernel]] = {}
    for kernel in kernels:
        found.setdefault(kernel.attributes.key, []).append(kernel)
    return list(found.values())


def _matched(alike: Sequence[LibraryKernel], length: int) -> tuple[LibraryKernel, bool]:
    """Return the kernel for a length, and whether it was built for it; raises ``NoKernelError``."""
    about = alike[0].attributes
    found = KernelLibrary(alike).match(KernelDemand(alike[0].name, about.class_1, about.parameter), length)
    return found, isinstance(found.content, Image) or length in found.content


def _why(found: LibraryKernel, others: Sequence[LibraryKernel], length: int) -> str:
    covered = found.attributes.covered
    if covered.exact:
        return "it is of exactly this length, which beats any range"
    also = [each for each in others if each is not found and each.attributes.covered.distance(length) == 0]
    return "it is the narrowest range that covers it" if also else "it is the only one that covers it"


def _row(kernel: Any) -> dict[str, Any]:
    attributes, whole = attributes_of(kernel), isinstance(kernel, Image)
    covered = attributes.covered
    first = kernel if whole else kernel.image(kernel.lengths[0])
    return {
        **{name: attributes.class_1.get(name) for name in ("operator", "heads", "head_size")},
        "covers": str(covered.written()),
        "form": "range" if not whole else "exact" if covered.exact else "bucket",
        "lengths": covered.high - covered.low + 1 if whole else len(kernel.lengths),
        "stretches": 1 if whole else len(kernel.stretches),
        "instructions": len(first.code) // 64,
        "preset": str(first.meta.params["name"]),
    }


def _ranges(covered: range, size: int) -> list[ValueRange]:
    """Return the buckets of ``size`` lengths that cover a range; none for a size of 0."""
    return [ValueRange(low, min(low + size - 1, covered[-1])) for low in covered[::size]] if size else []


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
