"""What takes long says what it does: on a terminal only, so that pipes and JSON stay clean."""

import json

import pytest

import caesura
from benchmarks.report import run_bench
from caesura import api
from caesura.views import progress
from examples.digits import MODEL
from sim.model.bus import ModelBus
from tests.system.command import caesura_command

SCENARIO = f"""name = "two digits"
time_unit = "cycles"
[models.a]
onnx = "{MODEL}"
[[streams]]
name = "s"
stages = [{{model = "a"}}]
arrivals = {{kind = "trace", times = [0.0]}}
"""


@pytest.fixture
def told(monkeypatch):
    """Each task that a line of progress was given; nothing else is running meanwhile."""
    tasks = []
    real = progress.Progress.task

    def task(self, what, **about):
        tasks.append(what)
        real(self, what, **about)

    monkeypatch.setattr(progress.Progress, "task", task)
    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(api.resolve(params))))
    return tasks


COMPILING = "compiling digits.onnx for tiny"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", MODEL, "--backend", "model"], [COMPILING, "sample 1 of 1"]),
        (["run", MODEL, "--backend", "model", "--report", "{folder}/p.html"], ["writing {folder}/p.html"]),
        (["compile", MODEL, "-o", "{folder}/d.cimg"], [COMPILING]),
        (["profile", MODEL, "-o", "{folder}/d.cimg"], [COMPILING, "measuring digits"]),
        (
            ["retime", MODEL, "--change", "dram_latency=90"],
            [COMPILING, "running unchanged", "running dram_latency=90"],
        ),
        (["info", MODEL], ["reading digits.onnx"]),
        (
            ["scenario", "{folder}/s.toml"],
            [COMPILING, "a alone", "serving two digits", "serving one request of s"],
        ),
        (["scenario", "{folder}/s.toml", "--report", "{folder}/p.html"], ["writing {folder}/p.html"]),
    ],
)
def test_commands_say_what_they_do(told, tmp_path, arguments, expected):
    (tmp_path / "s.toml").write_text(SCENARIO)
    code, out, err = caesura_command(*(str(one).format(folder=tmp_path) for one in arguments), "--json")
    assert (code, err) == (0, "") and json.loads(out)
    wanted = [one.format(folder=tmp_path) for one in expected]
    assert [one for one in dict.fromkeys(told) if one in wanted] == wanted


def test_benchmarks_name_the_figure(told, monkeypatch):
    from benchmarks import kernels

    (first, *_) = kernels.figures()
    monkeypatch.setattr(kernels, "figures", lambda: [first])
    run_bench("kernels", "tiny", "model", only=[first.name])
    assert told[0] == first.name


def test_a_build_has_the_terminal_for_itself(monkeypatch):
    """A simulator that is built has a display of its own."""
    shown = []
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "Status", lambda *_, **__: Recorded(shown))
    with progress.Progress() as line:
        line.task("compiling")
        line.rest()
        line.task("serving")
    assert shown == ["compiling", "start", "stop", "serving", "start", "stop"]


class Recorded:
    def __init__(self, shown):
        self.shown = shown

    def update(self, what):
        self.shown.append(str(what))

    def start(self):
        self.shown.append("start")

    def stop(self):
        self.shown.append("stop")
