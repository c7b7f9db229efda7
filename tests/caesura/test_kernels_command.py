"""``caesura kernels``, and ``caesura run`` on inputs that vary in length."""

import json

import numpy as np
import onnx
import pytest

from caesura import cli
from compiler import golden, reference
from tests.support.length_nets import conv_net
from tests.support.operation_nets import attention_net

LENGTHS = (5, 9, 17, 9)


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command; returns exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["caesura", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def model(tmp_path):
    onnx.save(conv_net((1, 1), (1, 1)), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.fixture
def samples(tmp_path):
    rng = np.random.default_rng(0)
    made = {f"x.{at}": rng.integers(-128, 128, (1, 4, size)).astype(np.int8) for at, size in enumerate(LENGTHS)}
    np.savez(tmp_path / "samples.npz", **made)
    return tmp_path / "samples.npz"


def test_a_library_is_built_listed_matched_and_run(command, model, samples, tmp_path):
    library, outputs = tmp_path / "net.ckl", tmp_path / "out.npz"
    code, out, _ = command("kernels", "build", model, "--lengths", "4:24", "--exact", "9,20", "-o", library)
    assert code == 0 and "3 kernels of 'net' for 'tiny'" in out
    code, out, _ = command("kernels", "list", library, "--json")
    listed = json.loads(out)["kernels"]
    code, out, _ = command("kernels", "build", model, "--lengths", "4:24", "--exact", "9,20", "-o", library, "--json")
    assert json.loads(out) == {"library": str(library), "model": "net", "preset": "tiny", "kernels": listed}
    assert [(row["covers"], row["form"], row["lengths"]) for row in listed] == [
        ("4..24", "range", 21), ("9", "exact", 1), ("20", "exact", 1),
    ]  # fmt: skip
    for length, chosen, why in ((9, "9", "exactly this length"), (10, "4..24", "the only one")):
        code, out, _ = command("kernels", "match", library, "--len", length)
        assert code == 0 and f"kernel for {chosen}: " in out and why in out
    code, out, _ = command("kernels", "match", library, "--len", 77)
    assert code == 1 and "the nearest are 'net' (length 4..24)" in out.replace("\n", " ")

    code, out, _ = command(
        "run", model, "--input", samples, "--kernels", library, "--check", "-o", outputs, "--json"
    )  # fmt: skip
    rows = json.loads(out)["samples"]
    assert code == 0
    assert [(row["length"], row["how"], row["check"]) for row in rows] == [
        (5, "range", "equal"), (9, "exact", "equal"), (17, "range", "equal"), (9, "exact", "equal"),
    ]  # fmt: skip
    with np.load(samples) as given, np.load(outputs) as found:
        for at in range(len(LENGTHS)):
            (wanted,) = golden.golden_outputs(model, {"x": given[f"x.{at}"]}).values()
            (name,) = [name for name in found.files if name.endswith(f".{at}")]
            np.testing.assert_array_equal(found[name], wanted)


def test_without_a_library_kernels_are_compiled(command, model, samples, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code, out, _ = command("run", model, "--input", samples, "--samples", 2, "--check", "--backend", "model")
    assert code == 0 and out.count("compiled") == 2 and out.count("equal") == 2


def test_kernels_for_each_operation(command, tmp_path):
    """Two attentions of one model find kernels by their head sizes; a length that no kernel covers is an error, or the
    CPU's."""
    onnx.save(attention_net([(2, 8), (1, 20)], 12), tmp_path / "net.onnx")
    rng, library = np.random.default_rng(0), tmp_path / "net.ckl"
    for name, sizes in (("all", (8, 12)), ("long", (24,))):
        made = {f"x.{at}": rng.integers(-128, 128, (1, size, 12)).astype(np.int8) for at, size in enumerate(sizes)}
        np.savez(tmp_path / f"{name}.npz", **made)
    build = ("kernels", "build", tmp_path / "net.onnx", "--lengths", "4:16:4", "--exact", "12", "--operations")
    code, out, _ = command(*build, "-o", library)
    assert code == 0 and "10 kernels of 'net' for 'tiny'" in out
    rows = json.loads(command("kernels", "list", library, "--json")[1])["kernels"]
    assert [(row["operator"], row["head_size"], row["covers"]) for row in rows if row["heads"]] == [
        ("attention", 8, "4..16"), ("attention", 8, "12"), ("attention", 20, "4..16"), ("attention", 20, "12"),
    ]  # fmt: skip
    code, out, _ = command("kernels", "match", library, "--len", 12)
    assert code == 0 and "attention 1 x 20, length 12: kernel for 12: it is of exactly this length" in out
    code, out, _ = command("kernels", "match", library, "--len", 24, "--json")
    assert code == 1 and "heads 1, head_size 20" in out

    run = ("run", tmp_path / "net.onnx", "--kernels", library, "--backend", "model", "--check", "--json", "--input")
    code, out, _ = command(*run, tmp_path / "all.npz")
    samples = json.loads(out)["samples"]
    assert code == 0 and [(row["how"], row["check"]) for row in samples] == [("5 range", "equal"), ("5 exact", "equal")]
    assert [each["kernel"] for each in samples[0]["operations"]] == ["4..16"] * 5
    assert samples[0]["latency_cycles"] == sum(each["cycles"] for each in samples[0]["operations"])
    code, _, err = command(*run, tmp_path / "long.npz")
    assert code == 2 and "no kernel for operation 'layers.0'" in err and "length 4..16" in err.replace("\n", " ")
    code, out, _ = command(*run, tmp_path / "long.npz", "--fallback")
    assert code == 0 and json.loads(out)["samples"][0]["how"] == "5 cpu"


def test_buckets_serve_lengths_that_nobody_listed(command, tmp_path):
    onnx.save(attention_net([(2, 8)], 12), tmp_path / "net.onnx")
    rng, library = np.random.default_rng(0), tmp_path / "net.ckl"
    made = {f"x.{at}": rng.integers(-128, 128, (1, size, 12)).astype(np.int8) for at, size in enumerate((5, 11, 12))}
    np.savez(tmp_path / "x.npz", **made)
    code, out, _ = command(
        "kernels", "build", tmp_path / "net.onnx", "--lengths", "4:15", "--buckets", "6", "--exact", "12",
        "--operations", "-o", library,
    )  # fmt: skip
    assert code == 0 and "9 kernels of 'net' for 'tiny'" in out
    rows = json.loads(command("kernels", "list", library, "--json")[1])["kernels"]
    assert [(row["covers"], row["form"], row["lengths"]) for row in rows[:3]] == [
        ("4..9", "bucket", 6), ("10..15", "bucket", 6), ("12", "exact", 1),
    ]  # fmt: skip
    code, out, _ = command(
        "run", tmp_path / "net.onnx", "--kernels", library, "--backend", "model", "--check", "--json", "--input",
        tmp_path / "x.npz",
    )  # fmt: skip
    samples = json.loads(out)["samples"]
    assert code == 0 and [(row["how"], row["check"]) for row in samples] == [
        ("3 range", "equal"), ("3 range", "equal"), ("3 exact", "equal"),
    ]  # fmt: skip
    assert [row["operations"][1]["kernel"] for row in samples] == ["4..9", "10..15", 12]


def test_operations_that_differ_are_told(command, tmp_path, monkeypatch):
    onnx.save(attention_net([(1, 8)], 8), tmp_path / "net.onnx")
    np.savez(tmp_path / "x.npz", **{"x.0": np.ones((1, 4, 8), np.int8)})
    command("kernels", "build", tmp_path / "net.onnx", "--lengths", "4:4", "--operations", "-o", tmp_path / "net.ckl")
    real = reference.from_memory
    monkeypatch.setattr(reference, "from_memory", lambda *given: real(*given) + 1)
    code, out, _ = command(
        "run", tmp_path / "net.onnx", "--input", tmp_path / "x.npz", "--kernels", tmp_path / "net.ckl", "--check"
    )
    assert code == 1 and "differ" in out


def test_a_difference_is_told_and_fails(command, model, samples, monkeypatch):
    real = golden.golden_outputs

    def wrong(*arguments):
        return {name: value + 1 for name, value in real(*arguments).items()}

    monkeypatch.setattr(golden, "golden_outputs", wrong)
    code, out, _ = command("run", model, "--input", samples, "--samples", 1, "--check")
    assert code == 1 and "differ" in out


def test_a_library_between_whose_lengths_one_lies(command, model, tmp_path):
    library = tmp_path / "net.ckl"
    assert command("kernels", "build", model, "--lengths", "4:24:4", "-o", library)[0] == 0
    assert command("kernels", "match", library, "--len", 8)[0] == 0
    code, out, _ = command("kernels", "match", library, "--len", 9)
    assert code == 1 and "between those that the kernel was built for" in out.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lengths", "24:4"), "--lengths must be first:last"),
        (("--lengths", "0:4"), "--lengths must be first:last"),
        (("--lengths", "4:8", "--exact", "9"), "--exact 9: is not among the lengths"),
        (("--lengths", "4:8", "--exact", "x"), "--exact must be lengths"),
        (("--lengths", "4:8", "--buckets", "4"), "--buckets is for --operations, and lengths without a step"),
        (("--lengths", "4:8:2", "--buckets", "4", "--operations"), "--buckets is for --operations"),
        (("--lengths", "4:8", "--dim", "L=3"), "leave --from-plan, --batch and --dim out"),
        (("--lengths", "4:8", "--engines", "auto"), "--engines auto is for models of one size"),
        (("--lengths", "4:8", "--dimension", "M"), "no input has a dynamic dimension 'M'"),
    ],
)
def test_what_cannot_be_built_is_refused(command, model, tmp_path, arguments, message):
    code, _, err = command("kernels", "build", model, *arguments, "-o", tmp_path / "net.ckl")
    assert code == 2 and message in err.replace("\n", " ")
    assert not (tmp_path / "net.ckl").exists()


def test_a_library_of_another_model_or_machine_is_refused(command, model, samples, tmp_path):
    onnx.save(conv_net((1, 1), (1, 1), seed=1), tmp_path / "other.onnx")
    library = tmp_path / "other.ckl"
    command("kernels", "build", tmp_path / "other.onnx", "--lengths", "5:5", "-o", library)
    code, _, err = command("run", model, "--input", samples, "--kernels", library)
    assert code == 2 and "other.ckl: its kernels are for model" in err
    command("kernels", "build", model, "--lengths", "5:5", "-o", library)
    machine = ("--backend", "model", "--set", "lv2_bytes=256KiB")
    code, _, err = command("run", model, "--input", samples, "--kernels", library, *machine)
    assert code == 2 and "its kernels are for hardware" in err
    library.write_bytes(library.read_bytes()[:-3])
    code, _, err = command("run", model, "--input", samples, "--kernels", library)
    assert code == 2 and "other.ckl: checksum mismatch" in err


def test_flags_that_tell_of_one_image_are_refused(command, model, samples):
    code, _, err = command("run", model, "--input", samples, "--profile")
    assert code == 2 and "leave --profile out, or name --dim" in err
    code, _, err = command("run", model, "--dim", "L=9", "--kernels", "x.ckl")
    assert code == 2 and "--kernels is for a model whose inputs vary in length" in err
