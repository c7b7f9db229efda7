"""Write a text token by token on the compiled RTL, and compare every score with the integer reference.

    python -m examples.words.demo "The finally clause" [--steps 60] [--weights int8] [--interrupted]

With `--interrupted` the text is written a second time while an urgent model comes within every token. Exit code 1 if a
score differs from the reference, or an interruption changes one.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import caesura
from compiler import CompileError
from examples.words import MODELS
from examples.words.device import Interrupted, Steps, TokenStep, Undisturbed, compiled, write
from examples.words.reference import IntegerStepper
from examples.words.text import Stepper, steps_to_write
from examples.words.tokens import decode
from hw.contract.params import preset
from sim import BACKENDS_HELP, DEFAULT_BACKEND

_PER_SECOND = 1e9  #: cycles


@dataclass(frozen=True)
class Verdict:
    """How many steps of a text are what they should be."""

    steps: int
    equal: int  #: all scores are the integer reference's, bit for bit
    chosen: int  #: onnxruntime's largest score is that of the same token
    tied: int  #: the two largest scores are equal

    @property
    def all_equal(self) -> bool:
        """Return whether every step equals the reference."""
        return self.equal == self.steps


def judged(model: Path, steps: Sequence[TokenStep]) -> Verdict:
    """Return what the integer reference and onnxruntime say of steps, given the same tokens."""
    exact, host = IntegerStepper(model), Stepper(model)
    equal = chosen = tied = 0
    for step in steps:
        equal += bool(np.array_equal(step.scores, exact.step(step.token)))
        chosen += step.choice == int(host.step(step.token).argmax())
        first, second = np.sort(step.scores)[-1:-3:-1]
        tied += bool(first == second)
    return Verdict(len(steps), equal, chosen, tied)


def written(console: Console, steps: Steps, prompt: Sequence[int], count: int) -> list[TokenStep]:
    """Write a text, and show it as it comes."""
    made = list[TokenStep]()
    for step in write(steps, prompt, count):
        made.append(step)
        if len(made) <= len(prompt):
            _show(console, step.token, "bold")
        if len(made) >= len(prompt):
            _show(console, step.choice)
    console.print("\n")
    return made


def _show(console: Console, token: int, style: str | None = None) -> None:
    console.print(decode([token]), end="", style=style, markup=False, highlight=False, soft_wrap=True)


def cost_table(texts: dict[str, tuple[list[TokenStep], Verdict]]) -> Table:
    """What a token costs, and what is right, for a terminal."""
    table = Table(title="tokens", title_justify="left", header_style="bold")
    table.add_column("")
    columns = list[list[str]]()
    for name, (steps, verdict) in texts.items():
        table.add_column(name, justify="right")
        latency = median(step.latency for step in steps)
        columns.append([
            f"{len(steps)}",
            f"{latency:,.0f}",
            f"{median(step.latency - step.cycles for step in steps):,.0f}",
            f"{_PER_SECOND / latency:,.0f}",
            f"{sum(step.interrupted > 0 for step in steps)}",
            f"{verdict.equal}",
            f"{verdict.chosen}",
            f"{verdict.tied}",
        ])  # fmt: skip
    names = (
        "read", "cycles of one, median", "of these the host's", "a second at 1 GHz", "interrupted",
        "scores equal the integer reference", "choice equals onnxruntime's", "two largest scores tie: the first counts",
    )  # fmt: skip
    for name, *cells in zip(names, *columns, strict=True):
        table.add_row(name, *cells)
    return table


def main() -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(description="write a text token by token on the RTL")
    parser.add_argument("prompt", nargs="?", default="The finally clause")
    parser.add_argument("--steps", type=int, default=60, help="tokens to write")
    parser.add_argument("--weights", choices=sorted(MODELS), default="int8", help="of which model")
    parser.add_argument("--interrupted", action="store_true", help="again, with an urgent model within every token")
    parser.add_argument("--preset", default="base", help="hardware parameters")
    parser.add_argument("--backend", default=DEFAULT_BACKEND, help=BACKENDS_HELP)
    options = parser.parse_args()
    try:
        prompt, count = steps_to_write(options.prompt, options.steps)
        path = MODELS[options.weights]
        image = compiled(options.weights, preset(options.preset))
    except (ValueError, CompileError) as error:
        parser.error(str(error))
    console, engines = Console(), len({job.engine for job in image.meta.jobs})
    console.print(f"{path.name}: on {options.preset!r}, engines used {engines}, backend {options.backend}\n")
    texts = dict[str, tuple[list[TokenStep], Verdict]]()
    with caesura.open(options.preset, options.backend) as device:
        start, model = time.monotonic(), device.load(image)
        with Undisturbed(model) as steps:
            alone = written(console, steps, prompt, count)
        texts["alone"] = alone, judged(path, alone)
        right = texts["alone"][1].all_equal
        told = list[str]()
        if options.interrupted:
            console.print("Again, with digits within every token:\n")
            with Interrupted(device, model, median(step.latency for step in alone)) as again:
                made = written(console, again, prompt, count)
            texts["interrupted"] = made, judged(path, made)
            same = same_scores(alone, made)
            right &= same and again.correct == len(made) and texts["interrupted"][1].all_equal
            told.append(_told(same, made, again))
        seconds, cycles = time.monotonic() - start, device.bus.cycle
    console.print(cost_table(texts))
    for line in (*told, f"{cycles:,} cycles simulated in {seconds:.1f} s"):
        console.print(line)
    return 0 if right else 1


def same_scores(texts: Sequence[TokenStep], others: Sequence[TokenStep]) -> bool:
    """Return whether two texts are the same, and all scores behind them."""
    return [step.token for step in texts] == [step.token for step in others] and all(
        np.array_equal(one.scores, other.scores) for one, other in zip(texts, others, strict=True)
    )


def _told(same: bool, made: Sequence[TokenStep], again: Interrupted) -> str:
    text = "[green]The text is the same, and every score[/]" if same else "[bold red]The text or a score DIFFERS[/]"
    return (
        f"{text}: {sum(step.interrupted > 0 for step in made)} of {len(made)} tokens were interrupted; digits was "
        f"right {again.correct} times, {median(again.responses):,.0f} cycles after it came (median)"
    )


if __name__ == "__main__":
    sys.exit(main())
