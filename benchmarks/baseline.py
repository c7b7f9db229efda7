"""Figures that do not depend on the computer, kept in ``baseline.json``: any change of them is noticed and explained.

    python -m benchmarks.baseline --compare [--quick]   # exit code 1 and a table, old -> new, if something differs
    python -m benchmarks.baseline --write [--quick]     # what ``make baseline`` does

``--quick`` leaves out what takes minutes.
"""

import argparse
import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

import caesura
from benchmarks.baseline_cases import CASES, BaselineCase, MissingModel
from benchmarks.lab import ALONE
from caesura import load_samples
from compiler import compile_model
from hw.contract.params import preset
from hw.image import Image

FILE = Path(__file__).with_name("baseline.json")
HINT = "if the change is meant, `make baseline` rewrites benchmarks/baseline.json: commit it with the change"


@dataclasses.dataclass(frozen=True)
class Figures:
    """One inference, on an SoC that was just powered on. Digests are the first 16 digits of SHA-256."""

    model: str  #: digest of the ONNX file
    image: str  #: digest of the bytes of the compiled image
    code_bytes: int
    instructions: int  #: issued by the bodies of all jobs
    cycles: int  #: of ``RunStats``: from the first prologue or body to the end of the last body


Baseline = dict[str, Figures]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A figure that changed; None stands for a case that is missing on one side."""

    case: str
    figure: str
    old: str | int | None
    new: str | int | None


def measure(case: BaselineCase) -> Figures:
    """Compile and run ``case`` on the native simulator. Raises :class:`MissingModel`."""
    path, inputs = case.files()
    image = compiled(case, path)
    program = _digest(image.to_bytes())  # before it runs, which stores durations in it
    feed = load_samples(inputs, image, 1)[0] if isinstance(inputs, Path) else inputs
    with caesura.open(case.preset, "native") as device:  # its own: cycles depend on when the DRAM refreshes
        _, stats = device.load(image).run(feed)
    issued = sum(layer.counters["instructions"] for layer in stats.layers if layer.engines)
    return Figures(_digest(path.read_bytes()), program, len(image.code), issued, stats.cycles)


def compiled(case: BaselineCase, path: Path) -> Image:
    """Return the image under the case's own name: generated models lie in files that are named after their
    generator."""
    params = preset(case.preset)
    return compile_model(path, params, engines=params.engines, name=case.model, options=ALONE)


def differences(
    old: Mapping[str, Figures], new: Mapping[str, Figures], cases: Iterable[BaselineCase]
) -> list[Difference]:
    """Return what differs between two baselines in ``cases``.

    A calibrated model may differ in the last bits of its scales where onnxruntime computes with other instructions:
    then its image is another one too, and only the figures are compared.
    """
    found = []
    for case in cases:
        before, after = old.get(case.name), new.get(case.name)
        if before is None or after is None:
            if before is not after:
                found.append(Difference(case.name, "case", "there" if before else None, "there" if after else None))
            continue
        names = [field.name for field in dataclasses.fields(Figures)]
        if case.calibrated and before.model != after.model:
            names = [name for name in names if name not in ("model", "image")]
        pairs = [(name, getattr(before, name), getattr(after, name)) for name in names]
        found += [Difference(case.name, *pair) for pair in pairs if pair[1] != pair[2]]
    return found


def show(found: Iterable[Difference]) -> Table:
    """Differences, for a terminal."""
    table = Table(title="differences from benchmarks/baseline.json", title_justify="left", header_style="bold")
    for column in ("case", "figure"):
        table.add_column(column, no_wrap=True)
    for column in ("old", "new", "change"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        table.add_row(one.case, one.figure, _text(one.old), _text(one.new), _change(one.old, one.new))
    return table


def read(path: Path) -> Baseline:
    """Return the baseline in ``path``; empty if there is none."""
    if not path.exists():
        return {}
    return {name: Figures(**fields) for name, fields in json.loads(path.read_text()).items()}


def write(baseline: Baseline, path: Path) -> None:
    """Write one line for each case, so that a difference between two versions of the file is easy to read."""
    lines = [f"{json.dumps(name)}: {json.dumps(dataclasses.asdict(baseline[name]))}" for name in sorted(baseline)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def measure_all(cases: Iterable[BaselineCase], console: Console) -> Baseline:
    """Return the figures of those ``cases`` whose models are there; tells which are not."""
    measured = {}
    for case in cases:
        try:
            measured[case.name] = measure(case)
        except MissingModel as error:
            console.print(f"{case.name}: left out: {error}")
    return measured


def main() -> int:
    """Compare or write; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline", description="figures that must not drift")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="rewrite benchmarks/baseline.json")
    what.add_argument("--compare", action="store_true", help="exit code 1 if a figure differs")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    options = parser.parse_args()
    console = Console()
    chosen = [case for case in CASES if not (options.quick and case.slow)]
    old, new = read(FILE), measure_all(chosen, console)
    measured = [case for case in chosen if case.name in new]
    found = differences(old, new, measured)
    if found:
        console.print(show(found))
    else:
        console.print(f"equal to benchmarks/baseline.json: all {len(measured)} cases measured")
    if options.compare:
        if found:
            console.print(HINT)
        return 1 if found else 0
    known = {case.name for case in CASES}
    write({name: figures for name, figures in (old | new).items() if name in known}, FILE)
    return 0


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _text(value: str | int | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else value


def _change(old: str | int | None, new: str | int | None) -> str:
    return f"{100 * (new - old) / old:+.2f} %" if isinstance(old, int) and isinstance(new, int) and old else ""


if __name__ == "__main__":
    sys.exit(main())
