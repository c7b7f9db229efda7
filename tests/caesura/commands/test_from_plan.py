"""``--plan`` and ``--from-plan``: what was decided is written, changed by hand, and compiled again."""

import copy
import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import caesura
from compiler.compile import compile_model
from compiler.plan.plan import Plan
from compiler.plan.plan_error import PlanError
from hw.contract.params import preset
from tests.caesura.commands.test_batch import dynamic_model
from tests.support.networks import DIGITS
from tests.support.onnx_models import Net
from tests.system.command import caesura_command


def odd_model() -> onnx.ModelProto:
    """A convolution, and what the accelerator cannot."""
    net = Net()
    x = net.dq(net.q(net.conv(net.dq(net.input((1, 4, 4, 4)), 0.031), 0.031, (8, 4, 1, 1)), 0.9), 0.9)
    return net.model(net.q(net.node("CumSum", [x, net.const(2, np.int64)], name="running"), 3.0))


def wide_model() -> onnx.ModelProto:
    """Many channels between few, of which LV2 holds parts of the image only."""
    net, (x, scale), fan = Net(), (None, 0.031), 8
    x = net.dq(net.input((1, 8, 64, 64)), scale)
    for channels, kernel, how in ((96, 1, {}), (96, 3, {"group": 96, "strides": [2, 2], "pads": [1] * 4}), (24, 1, {})):
        weights = (channels, fan // how.get("group", 1), kernel, kernel)
        x, scale, fan = net.dq(net.q(net.conv(x, scale, weights, **how), 0.9), 0.9), 0.9, channels
    return net.model(net.q(net.conv(x, scale, (32, fan, 3, 3), pads=[1] * 4), 0.9))


PAGE = Path(__file__).parents[3] / "docs" / "plans.md"
#: Kinds of models: what they are compiled with, and what a plan does not say of that.
KINDS = {
    "plain": (DIGITS, [], []),
    "several engines": (DIGITS, ["--preset", "base", "--engines", "2"], []),
    "placed": (DIGITS, ["--preset", "base", "--engines", "2", "--placed"], []),
    "little LV2": (DIGITS, ["--lv2-limit", "24000"], []),
    "points": (DIGITS, ["--cancel-interval", "600"], []),
    "batch": (dynamic_model, ["--batch", "3"], ["--batch", "3"]),
    "split": (wide_model, ["--preset", "base", "--engines", "2", "--lv2-limit", str(384 << 10)], []),
    "CPU steps": (odd_model, ["--fallback"], ["--fallback"]),
}


def compiled(model, folder, *arguments) -> bytes:
    code, _, err = caesura_command("compile", model, "-o", folder / "m.cimg", *arguments)
    assert code == 0, err
    return (folder / "m.cimg").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_makes_the_same_image(tmp_path, kind):
    model, options, beside = KINDS[kind]
    if callable(model):
        onnx.save(model(), tmp_path / "m.onnx")
        model = tmp_path / "m.onnx"
    plan = tmp_path / "plan.json"
    image = compiled(model, tmp_path, *options, "--plan", plan)
    assert compiled(model, tmp_path, *beside, "--from-plan", plan, "--plan", tmp_path / "again.json") == image
    assert (tmp_path / "again.json").read_text() == plan.read_text()
    assert (kind == "split") == any(one["kind"] == "cut" for one in json.loads(plan.read_text())["rewrites"])


def test_an_observed_model(tmp_path):
    """By the functions of Python, which observe: a plan, its file, or as it came."""
    made = caesura.compile(DIGITS, observe=True)
    plan = caesura.api.compile_with_report(DIGITS, observe=True).plan
    plan.write(tmp_path / "plan.json")
    for given in (plan, tmp_path / "plan.json", str(tmp_path / "plan.json")):
        assert caesura.compile(DIGITS, plan=given).to_bytes() == made.to_bytes()
    for more in ({"preset": "base"}, {"options": caesura.Options()}, {"engines": 1}, {"observe": True}):
        with pytest.raises(PlanError, match="has hardware and options of its own: leave them out"):
            caesura.compile(DIGITS, plan=plan, **more)
    assert compile_model(DIGITS, preset("tiny"), plan=plan).to_bytes() == made.to_bytes()


@pytest.mark.parametrize("command", ["compile", "run", "profile", "retime"])
@pytest.mark.parametrize(
    "more, told",
    [
        (["--order", "source"], "options are those of the plan: leave out --order"),
        (["--engines", "auto", "--no-split"], "leave out --engines, --no-split"),
        (["--preset", "base"], "the plan is for preset 'tiny': leave the machine out"),
    ],
)
def test_options_are_those_of_the_plan(tmp_path, command, more, told):
    compiled(DIGITS, tmp_path, "--plan", tmp_path / "plan.json")
    output = ["-o", tmp_path / "m.cimg"] if command == "compile" else []
    code, _, err = caesura_command(command, DIGITS, *output, "--from-plan", tmp_path / "plan.json", *more)
    assert code == 2 and told in " ".join(err.split())


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_a_file_that_is_no_plan_is_an_error_and_no_traceback(tmp_path, text):
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    code, _, err = caesura_command("run", DIGITS, "--from-plan", tmp_path / "plan.json")
    assert code == 2 and re.search(r"plan\.json: (no|not a) plan", " ".join(err.split())) and "Traceback" not in err


def _page_example(name: str) -> dict:
    """The part of a plan that the page shows under ``name``."""
    found: dict = json.loads("{" + re.search(rf"<!-- {name} -->\n+```json\n(.*?)```", PAGE.read_text(), re.S)[1] + "}")
    return found


@pytest.mark.parametrize("name", ["as decided", "rows", "alone", "other region"])
def test_the_page_shows_what_is_so(tmp_path, name):
    """Each change of the page was made, and took the cycles that stand there; results are the same."""
    compiled(DIGITS, tmp_path, "--plan", tmp_path / "plan.json")
    fields = json.loads((tmp_path / "plan.json").read_text())
    changed = copy.deepcopy(fields)
    if name != "as decided":
        steps = _page_example(name)["steps"]
        layers = {layer for step in steps for layer in step["layers"]}
        first = next(at for at, step in enumerate(fields["steps"]) if layers & {*step["layers"]})
        kept = [step for step in fields["steps"] if not layers & {*step["layers"]}]
        changed["steps"] = [*kept[:first], *steps, *kept[first:]]
        del changed["memory"]
    (tmp_path / "plan.json").write_text(json.dumps(changed))
    run = ["--backend", "model", "--json"]
    code, out, err = caesura_command("run", DIGITS, "--from-plan", tmp_path / "plan.json", *run)
    assert code == 0, err
    _, plain, _ = caesura_command("run", DIGITS, *run)
    cycles = re.search(rf"\| {name} \|.*\| ([\d,]+) \|", PAGE.read_text())[1]
    assert f"{json.loads(out)['cycles']:,}" == cycles
    assert json.loads(out)["outputs"] == json.loads(plain)["outputs"]
    assert Plan.read(tmp_path / "plan.json").complete == (name == "as decided")
