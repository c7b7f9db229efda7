"""Names are text: whatever a model, an image, a scenario or a file is called, every command shows it, escaped."""

import ast
import html
import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from bokeh.document import Document
from bokeh.models import Axis, Div, HoverTool, TableColumn
from bokeh.models.annotations import Title
from bokeh.models.text import PlainText
from onnx import helper

import caesura
from caesura.cli import app
from tests.caesura.commands.test_quantise import float_model
from tests.support.float_nets import SHAPE
from tests.support.hostile_names import FILE, NAME, SHOWN, STEERING, hostile_model
from tests.support.networks import DIGITS
from tests.support.web_pages import loads
from tests.system.command import caesura_command

ROOT = Path(caesura.__file__).parents[1]
SCENARIO = f"""
name = {json.dumps(NAME)}
time_unit = {json.dumps(NAME)}
[machine.preemption]
dump = 1
restore = 1
interval = 1
""" + "".join(
    f"[[models.{json.dumps(NAME + name)}.layers]]\nload = 1\ncompute = 4\nrepeat = 4\n"
    f"[[streams]]\nname = {json.dumps(NAME + name)}\npriority = {priority}\n"
    f"stages = [{{ model = {json.dumps(NAME + name)} }}, {{ cpu = {json.dumps(NAME)}, duration = 1 }}]\n"
    f'arrivals = {{ kind = "periodic", period = 7, count = 3 }}\n'
    for name, priority in (("a", 0), ("b", 1))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of a hostile name, with a hostile model in a file of a hostile name, and an image of it."""
    path = tmp_path_factory.mktemp("names") / FILE
    path.mkdir()
    hostile_model(path / f"{FILE}.onnx", DIGITS)
    code, _, error = caesura_command("compile", path / f"{FILE}.onnx", "-o", path / f"{FILE}.cimg")
    assert not code, error
    (path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    told = {"model": NAME, "preset": NAME, "backend": NAME, "cycles": 1, "layers": [{"name": NAME, "cycles": 1}]}
    (path / "r.json").write_text(json.dumps(told), encoding="utf-8")
    return path


@pytest.fixture(params=["plain", "coloured"])
def terminal(request, monkeypatch):
    """A pipe, or what takes colours; wide, so that names are whole."""
    monkeypatch.setenv("COLUMNS", "2000")
    if request.param == "coloured":
        monkeypatch.setenv("FORCE_COLOR", "1")
    else:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    return request.param


def innocent(text, terminal):
    """What is printed has no character that steers a terminal, but for the colours of our own."""
    assert "Traceback" not in text
    assert not [one for one in STEERING if one in text]
    text = re.sub(r"\x1b\[[0-9;]*m", "", text) if terminal == "coloured" else text
    odd = {char for char in text if not char.isprintable() and char != "\n"}
    assert not odd
    return text


MODEL, IMAGE = "{folder}/{file}.onnx", "{folder}/{file}.cimg"
COMMANDS = {
    "info model": ["info", MODEL],
    "info image": ["info", IMAGE, "--points"],
    "compile": ["compile", MODEL, "-o", "{folder}/{file}2.cimg", "--cancel-max-live", "1"],
    "disasm": ["disasm", IMAGE],
    "export": ["export", IMAGE, "-o", "{folder}/{file}.flat"],
    "run": ["run", MODEL, "--backend", "model", "--profile", "--check"],
    "run, csv": ["run", IMAGE, "--backend", "model", "--csv"],
    "run, json": ["run", IMAGE, "--backend", "model", "--json"],
    "profile": ["profile", IMAGE, "--backend", "model", "-o", "{folder}/{file}3.cimg"],
    "retime": ["retime", IMAGE, "--change", "dram_latency=50"],
    "scenario": ["scenario", "{folder}/s.toml"],
    "scenarios": ["scenario", "{folder}/s.toml", "--policy", "fcfs", "--policy", "idle_time"],
    "scenario, chart": ["scenario", "{folder}/s.toml", "--chart"],
    "scenario, csv": ["scenario", "{folder}/s.toml", "--csv"],
    "scenario, json": ["scenario", "{folder}/s.toml", "--json"],
    "serve": ["serve", IMAGE, "--requests", "1", "--chart"],
    "serve, csv": ["serve", IMAGE, "--requests", "1", "--csv"],
    "verilog": ["verilog", "--preset", FILE, "-o", "{folder}"],
    "diff": ["diff", "{folder}/r.json", "{folder}/r.json", "--all"],
    "no such result": ["diff", "{folder}/r.json", "{folder}/none-{file}"],
    "memory": ["memory", MODEL, "--sizes", "16KiB"],
    "whatif": ["whatif", MODEL, "--set", "lv2_bytes=64KiB", "--backend", "model"],
    "fpga": ["fpga", "--preset", FILE],
    "bench": ["bench", "utilisation", "--only", NAME],
    "bench of no name": ["bench", NAME],
    "no such file": ["run", "{folder}/none-{file}"],
    "no such input": ["run", IMAGE, "--input", "{folder}/none-{file}.npz", "--backend", "model"],
    "no such backend": ["run", IMAGE, "--backend", NAME],
    "no such folder": ["compile", MODEL, "-o", f"{{folder}}/{NAME}/x.cimg"],
    "no such dimension": ["compile", MODEL, "-o", "{folder}/x.cimg", "--dim", f"{NAME}=3"],
    "no such change": ["retime", IMAGE, "--change", f"{NAME}=3"],
    "no such model": ["serve", "{folder}/none-{file}.cimg"],
    "no such board": ["fpga", "--board", NAME],
    "no such block": ["fpga", "--block", NAME],
    "no such scenario": ["admit", "{folder}/none-{file}.toml"],
    "no such policy": ["scenario", "{folder}/s.toml", "--policy", NAME],
    "no sweep": ["sweep", "{folder}/s.toml"],
    "no such command": [NAME],
    "no such option": ["run", f"--{NAME}"],
    "too many arguments": ["info", "tiny", NAME],
    "no number": ["run", IMAGE, "--samples", NAME],
    "no such parameter": ["info", "tiny", "--set", f"{NAME}=3"],
}
FAILING = ("bench", "fpga", "no ", "too ", "verilog")


@pytest.mark.parametrize("what", COMMANDS)
def test_every_command_shows_names_as_text(folder, terminal, what):
    arguments = [one.replace("{folder}", str(folder)).replace("{file}", FILE) for one in COMMANDS[what]]
    code, out, err = caesura_command(*arguments)
    assert code == (2 if what.startswith(FAILING) else 0), err
    text = innocent(out + err, terminal)
    if "json" in what:
        assert any(NAME in one for one in strings(json.loads(out)))
    elif what not in ("export", "no number"):
        # Some errors say a name as Python writes it, and typer breaks lines.
        written = {SHOWN, repr(SHOWN)[1:-1], repr(f"{FILE}")[1:-1], SHOWN[:13]}
        assert any(one in text for one in written), text[:3000]


def test_the_search_is_complete():
    """All commands are in the list above, or in the tests below; ``demo`` takes the name of an example."""
    names = {command.callback.__name__ for command in app.registered_commands}
    assert names - {what[0] for what in COMMANDS.values()} == {"quantise", "demo"}


def test_quantise(folder, terminal):
    model, data = folder / f"{FILE}-float.onnx", folder / f"{FILE}.npy"
    onnx.save(float_model(), model)
    hostile_model(model, model)
    np.save(data, np.random.default_rng(0).normal(0, 1, (2, *SHAPE[1:])).astype(np.float32))
    code, out, err = caesura_command("quantise", model, "--data", data, "-o", folder / f"{FILE}-q.onnx")
    assert code == 0, err
    assert SHOWN in innocent(out + err, terminal)
    code, out, err = caesura_command("quantise", folder / f"{FILE}-q.onnx", "--data", data, "-o", folder / "x.onnx")
    assert code == 2 and SHOWN in innocent(out + err, terminal)
    graph = helper.make_graph(
        [helper.make_node("Tile", [NAME, "repeats"], ["y"], name=NAME)], NAME,
        [helper.make_tensor_value_info(NAME, 1, ["n"])], [helper.make_tensor_value_info("y", 1, [2])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), model)
    code, out, err = caesura_command("quantise", model, "--data", data, "-o", folder / "x.onnx")
    assert code == 2 and SHOWN in innocent(out + err, terminal)


def test_sweeps(folder, terminal):
    """With a point that fails, in table, picture and progress."""
    text = (
        f'name = {json.dumps(NAME)}\nmodels = [{json.dumps(f"{FILE}.onnx")}]\n[machine]\npreset = "tiny"\n'
        f"[options]\n{json.dumps(NAME)} = [1, 2]\norder = [{json.dumps(NAME)}, {json.dumps('source')}]\n"
    )
    (folder / "sweep.toml").write_text(text, encoding="utf-8")
    for form in ([], ["--csv"]):
        code, out, err = caesura_command("sweep", folder / "sweep.toml", "--jobs", "1", "-o", folder / "out", *form)
        assert code == 1 and SHOWN in innocent(out, terminal)
        assert not [one for one in ("\x1b]", "\x07", "\u202e") if one in err], "of rich's own display there are others"
    innocent((folder / "out" / "table.csv").read_text(), terminal)
    innocent((folder / "out" / "table.json").read_text(), terminal)
    harmless(folder / "out" / "picture.html")


def test_traces(folder, tmp_path):
    for arguments in (
        ["run", folder / f"{FILE}.cimg", "--backend", "model"],
        ["scenario", folder / "s.toml"],
    ):
        assert caesura_command(*arguments, "--trace", tmp_path / "t.json")[0] == 0
        names = list(strings(json.loads((tmp_path / "t.json").read_text())))
        assert innocent("\n".join(names), "plain") and any(SHOWN in one for one in names)


def strings(value):
    """All text in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def harmless(path):
    """A page whose names are text in all of its parts; looked at as the document that Bokeh draws."""
    page = path.read_text(encoding="utf-8")
    assert not loads(page)
    (raw,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    (content,) = json.loads(html.unescape(raw)).values()
    assert not [one for text in strings(content) for one in STEERING if one in text]
    found = list(Document.from_json(content).models)
    assert all(one.disable_math for one in found if isinstance(one, Div))
    assert not [one.text for one in found if isinstance(one, Div) if loads(one.text) or "<script" in one.text]
    labels = [one.axis_label for one in found if isinstance(one, Axis)] + [
        one.text for one in found if isinstance(one, Title)
    ]
    assert not [one for one in labels if not isinstance(one, PlainText) and one and "$$" in one]
    assert "mjx-container" not in page, "MathJax is not even there"
    heads = [one.title for one in found if isinstance(one, TableColumn)]
    assert not [one for one in heads if "<" in one], "Bokeh takes them for HTML"
    templates = [template for one in found if isinstance(one, HoverTool) for _, template in one.tooltips]
    assert all(re.fullmatch(r"[@$]\w+(\{[0,.\[\]]+\})?", one) for one in templates), "nor may they hold names"
    titles = re.findall(r"<title>(.*?)</title>", page, re.DOTALL)
    assert titles and not [one for one in STEERING if one in titles[0]]
    return page, found


def test_pages(folder, tmp_path):
    page, found = {}, {}
    for name, arguments in {
        "run": ["run", folder / f"{FILE}.cimg", "--backend", "model", "--units"],
        "scenario": ["scenario", folder / "s.toml"],
    }.items():
        code, _, err = caesura_command(*arguments, "--report", tmp_path / "p.html")
        assert code == 0, err
        page[name], found[name] = harmless(tmp_path / "p.html")
        assert any(html.escape(SHOWN) in one.text for one in found[name] if isinstance(one, Div))
    assert any(isinstance(one, PlainText) and SHOWN in one.text for one in found["scenario"]), "units on an axis"


def test_what_is_printed_goes_through_one_door():
    """Nobody but ``caesura.views.terminal`` makes text for rich, or prints."""
    doors = {"live.py", "progress.py", "stages.py", "sweep.py"}  # the others have displays that move
    odd = []
    for path in sorted([*(ROOT / "caesura").rglob("*.py"), *(ROOT / "sim").rglob("*.py")]):
        if path.name in ("terminal.py", "docgen.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            printing = called in ("print", "typer.echo", "Text", "Table", "Text.from_markup", "rich.print")
            if printing or (called == "Console" and path.name not in doors):
                odd.append(f"{path.relative_to(ROOT)}:{node.lineno}: {called}")
    assert not odd, "use caesura.views.terminal"
