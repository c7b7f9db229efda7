"""Whatever of a user's fails, a model, an image, a scenario or a policy, is told in one message, with exit code 2."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import caesura
from caesura import api, cli
from caesura.sweep.measure import measure
from caesura.sweep.spec import load_sweep
from examples.digits import MODEL
from hw.contract.params import preset
from sim.model.bus import ModelBus
from tests.support.images import copy_image, negating_image

TINY = preset("tiny")


@pytest.fixture
def failure(monkeypatch, capsys):
    """Runs a command that must fail on a fake SoC; returns its one message, after the line of what is where, if the
    run has begun."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["caesura", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        assert (stop.value.code, out) == (2, "")
        begun, said, message = err.partition("error: ")
        assert said and begun.count("\n") == ("on the accelerator" in begun) and "error: " not in message
        return " ".join((said + message).split())

    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(params)))
    return run


def failing_image(path):
    """A step on the CPU reshapes to another number of elements, which onnxruntime finds out when it runs."""
    image = negating_image(TINY)
    read, made = image.meta.steps[-1].inputs[0], image.meta.steps[-1].outputs[0]
    ports = [helper.make_tensor_value_info(name, TensorProto.INT8, [1, 8, 8]) for name in (read, made)]
    wanted = helper.make_node("Constant", [], ["shape"], value_ints=[3, 5])
    node = helper.make_node("Reshape", [read, "shape"], [made], name="odd")
    graph = helper.make_graph([wanted, node], "g", ports[:1], [onnx.ValueInfoProto(name=made)])
    graph.output[0].type.tensor_type.elem_type = TensorProto.INT8
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    image.host_models[0] = model.SerializeToString()
    image.meta.host_sizes = [len(image.host_models[0])]
    image.save(path)
    return path


@pytest.mark.parametrize("command", ["run", "profile"])
def test_a_step_on_the_cpu_that_fails(failure, tmp_path, command):
    said = failure(command, failing_image(tmp_path / "failing.cimg"))
    assert "model 'negate', step on the CPU for 'y0' (test): " in said and "reshape" in said.lower()


POLICY = "from sw.runtime.policies import OrderPolicy\n"
STREAM = """
[[streams]]
name = "s"
stages = [{model = "m"}]
arrivals = {kind = "trace", times = [0.0, 1.0]}
"""


def scenario(path, model):
    path.write_text(f'name = "x"\ntime_unit = "cycles"\n[models.m]\n{model}\n{STREAM}')
    return path


@pytest.mark.parametrize("model", ["layers = [{compute = 5.0}, {compute = 5.0}]", "onnx = 'MODEL'"])
@pytest.mark.parametrize(
    ("body", "message"),
    [("raise KeyError('oops')", "KeyError: 'oops' ("), ("return 77", "Own.choose must return one of its candidates")],
)
def test_a_policy_that_fails(failure, tmp_path, model, body, message):
    policy = f"{POLICY}class Own(OrderPolicy):\n    def choose(self, state, candidates):\n        {body}\n"
    (tmp_path / "own.py").write_text(policy)
    file = scenario(tmp_path / "s.toml", model.replace("MODEL", str(MODEL)))
    said = failure("scenario", file, "--policy", f"{tmp_path / 'own.py'}:Own")
    assert "a policy failed: " in said and message in said
    assert ("own.py, line 4" in said) == (body != "return 77")


def test_a_policy_that_cannot_be_made(failure, tmp_path):
    (tmp_path / "own.py").write_text(f"{POLICY}class Own(OrderPolicy):\n    def __init__(self):\n        {{}}['key']\n")
    file = scenario(tmp_path / "s.toml", "layers = [{compute = 5.0}]")
    assert "KeyError: 'key'" in failure("scenario", file, "--policy", f"{tmp_path / 'own.py'}:Own")


def test_a_scenario_whose_step_on_the_cpu_fails(failure, tmp_path, monkeypatch):
    image = caesura.Image.load(failing_image(tmp_path / "failing.cimg"))
    monkeypatch.setattr(api, "compile", lambda *_, **__: image)
    said = failure("scenario", scenario(tmp_path / "s.toml", 'onnx = "failing.onnx"'))
    assert "step on the CPU for 'y0'" in said


def test_a_scenario_names_a_workload_that_does_not_exist(failure, tmp_path):
    said = failure("scenario", scenario(tmp_path / "s.toml", 'workload = "resnet51"'))
    assert "model 'm': no workload 'resnet51'; did you mean resnet50" in said


def test_a_trace_of_arrivals_that_is_no_text(failure, tmp_path):
    (tmp_path / "times").write_bytes(b"\xff\xfe\x00")
    file = scenario(tmp_path / "s.toml", "layers = [{compute = 5.0}]")
    file.write_text(file.read_text().replace("times = [0.0, 1.0]", 'file = "times"'))
    assert "times: not a text file" in failure("scenario", file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", MODEL, "--output"], ["run", MODEL, "--trace"], ["run", MODEL, "--report"], ["compile", MODEL, "-o"],
        ["profile", MODEL, "-o"], ["quantise", MODEL, "--data", MODEL, "-o"], ["scenario", "s.toml", "--trace"],
        ["scenario", "s.toml", "--report"], ["bench", "kernels", "--report"],
    ],
)  # fmt: skip
def test_files_that_cannot_be_written_are_told_before_anything_runs(failure, tmp_path, monkeypatch, arguments):
    monkeypatch.setattr(api, "compile_with_report", None)
    assert f"there is no folder {tmp_path / 'none'}" in failure(*arguments, tmp_path / "none" / "file.npz")
    assert "is a folder; name a file" in failure(*arguments, tmp_path)


def test_a_file_of_the_system_is_named(failure, tmp_path):
    copy_image(TINY).save(tmp_path / "a.cimg")
    said = failure("export", tmp_path / "a.cimg", "-o", tmp_path / "none" / "x")
    assert said == f"error: {tmp_path / 'none' / 'x'}: No such file or directory"


def test_no_number_is_no_input(failure, tmp_path):
    image = negating_image(TINY)
    image.save(tmp_path / "a.cimg")
    np.save(tmp_path / "x.npy", np.full((1, 8, 8), np.nan, np.float32))
    said = failure("run", tmp_path / "a.cimg", "--input", tmp_path / "x.npy")
    assert "input 'in': holds NaN, which no int8 stands for" in said


@pytest.mark.parametrize("options", [["--engines", "1"], ["--fallback"], ["--dim", "n=2"], ["--lv2-limit", "4096"]])
def test_options_of_the_compiler_are_not_ignored_with_an_image(failure, image_file, options):
    assert "options of the compiler need the .onnx file" in failure("run", image_file, *options)
    assert "is compiled already" in failure("compile", image_file, "-o", image_file.with_name("b.cimg"))


@pytest.fixture
def image_file(tmp_path):
    copy_image(TINY).save(tmp_path / "copy.cimg")
    return tmp_path / "copy.cimg"


def test_a_file_that_holds_no_arrays(failure, image_file, tmp_path):
    (tmp_path / "x.npz").write_text("nothing of NumPy's")
    said = failure("run", image_file, "--input", tmp_path / "x.npz")
    assert "not a readable .npz file: it has neither form" in said and "allow_pickle" not in said


def test_a_sweep_with_an_unknown_key(failure, tmp_path):
    (tmp_path / "s.toml").write_text('models = ["a.onnx"]\nschedule = 3\n')
    assert "schedule: is not a known key; remove it" in failure("sweep", tmp_path / "s.toml")


def test_a_sweep_names_the_model_and_not_its_copy(tmp_path):
    (tmp_path / "cut.onnx").write_bytes(MODEL.read_bytes()[:500])
    (tmp_path / "s.toml").write_text('models = ["cut.onnx"]\n')
    (point,) = load_sweep(tmp_path / "s.toml")[1]
    assert measure(point, (tmp_path / "cut.onnx").read_bytes())["error"].startswith("cut.onnx: not an ONNX model")


@pytest.mark.parametrize(
    "content", ["junk", "[]", '{"sources": "", "campaigns": {"hostile 0": {}}}', '{"campaigns": 1}']
)
def test_progress_of_campaigns_that_is_none(failure, tmp_path, content):
    (tmp_path / "p.json").write_text(content)
    said = failure("bench", "trust", "--backend", "model", "--budget", "1ms", "--resume", tmp_path / "p.json")
    assert "p.json: holds no progress of campaigns" in said
