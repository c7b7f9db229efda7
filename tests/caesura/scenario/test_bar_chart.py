"""``caesura scenario --chart``: engines and CPUs as text."""

import io
import random
import re
from pathlib import Path

import pytest
from rich.console import Console

from caesura.api import UsageError
from caesura.commands.scenario import scenario
from caesura.scenario.outcome import CpuRun, LayerRun, Outcome
from caesura.scenario.outcome_chart import Bar, chart, outcome_chart
from caesura.scenario.runner import run_scenario
from sim.synthetic.machine import StateMove
from sim.trace import Span

SCENARIOS = Path(__file__).parents[3] / "examples" / "scenarios"


def text_of(outcome, unit="ms", width=80):
    console = Console(width=500, file=io.StringIO())
    with console.capture() as printed:
        console.print(outcome_chart(outcome, unit, width))
    return printed.get()


def layer(model, engine, start, end):
    run = LayerRun(model, model, 0, engine, 0, 0, 0, 1, 0, (0, 0))
    run.start, run.end = start, end
    return run


def test_the_driving_scenario(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "105")
    scenario(SCENARIOS / "driving.toml", ["fcfs"], chart=True)
    out = capsys.readouterr().out
    assert "P perception, L plan, p parse on the CPU, d dump, r restore; time in ms" in out
    engine = "".join(re.findall(r"^engine 0 +(.*)$", out, re.M))
    assert re.match(r"[P·]+dL+r[P·]+dL+r", engine) and engine.count("d") == engine.count("r") == 39
    assert len(re.findall(r"^CPU ", out, re.M)) == len(re.findall(r"^engine 0 ", out, re.M)) > 1
    assert all(len(line) <= 105 for line in out.splitlines())


def test_every_policy_has_its_own(capsys):
    scenario(SCENARIOS / "driving.toml", ["fcfs", "sjf"], chart=True)
    out = capsys.readouterr().out
    assert out.index("fcfs:") < out.index("sjf:") and out.count("P perception") == 2


@pytest.mark.parametrize("form", [{"as_csv": True}, {}])
def test_it_is_for_people(form):
    with pytest.raises(UsageError, match="--chart"):
        scenario(SCENARIOS / "driving.toml", ["fcfs"], as_json=not form, chart=True, **form)


def test_a_device_is_drawn_from_its_timeline():
    timeline = [
        Span(("engine 0", "executor"), "conv1", 0, 500, "net"),
        Span(("engine 0", "executor"), "dump", 500, 501, "dump"),
        Span(("engine 1", "executor"), "conv1", 0, 1000, "other"),
        Span(("engine 1", "loader"), "conv1: weights", 0, 700, "third"),
    ]
    out = text_of(Outcome(2, 2, timeline=timeline), "ns", 27)
    assert re.search(r"^engine 0 +N+d·+$", out, re.M) and re.search(r"^engine 1 +O+$", out, re.M)
    assert "third" not in out


def test_several_cpus_have_lines_of_their_own():
    outcome = Outcome(1, 1, layers=[layer("net", 0, 0, 4)], cpu=[CpuRun("s", "parse", n, n, n + 2) for n in (0, 1)])
    out = text_of(outcome)
    assert re.search(r"^CPU 0 +p+·+$", out, re.M) and re.search(r"^CPU 1 +·+p+·+$", out, re.M)


@pytest.mark.parametrize("seed", range(30))
def test_random_outcomes(seed):
    """Lines are as wide as told, letters differ, and every dump is seen."""
    rng = random.Random(seed)
    engines, count = rng.randint(1, 3), rng.randint(0, 60)
    names = [rng.choice(("net", "nest", "dread", "ä", "1", "d")) + str(n) * rng.randint(0, 1) for n in range(50)]
    begins = [rng.uniform(0, 10 ** rng.randint(0, 6)) for _ in range(count)]
    layers = [layer(rng.choice(names), rng.randrange(engines), at, at + rng.expovariate(1)) for at in begins]
    last = max((run.end for run in layers), default=0)
    moves = [StateMove("dump", 0, at, at) for at in (rng.uniform(0, last * 0.9),)]
    width = rng.randint(18, 120)
    out = text_of(Outcome(engines, engines, layers=layers, moves=moves), width=width).splitlines()
    legend = dict(part.split(" ", 1)[::-1] for part in out[0].split(";")[0].split(", "))
    free = [letter for letter in legend.values() if letter != "#"]
    assert len(set(free)) == len(free), seed
    assert all(len(line) <= width for line in out[1:]), seed
    assert any("d" in line[13:] for line in out if line.startswith("engine 0")), seed


def test_figures_of_the_scale_stand_where_they_say():
    *_, scale = chart([Bar("a", "A", 0, 1_000_000)], ["a"], 20_000)
    line = scale.plain[13:]
    assert {line.index(f"|{figure}") for figure in ("0", "500,000", "1,000,000")} == {0, 25, 50}


def test_stages_on_the_cpu_are_in_traces(tmp_path):
    run_scenario(SCENARIOS / "driving.toml", "fcfs", trace=tmp_path / "t.json")
    assert '"parse"' in (tmp_path / "t.json").read_text()
