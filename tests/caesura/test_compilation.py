"""Every command that compiles has all flags of a compilation, and what they say arrives at the compiler."""

import json

import onnx
import pytest
import typer

from caesura import api, cli
from caesura.compilation import OPTION_FLAGS, Compilation, lv2_limit
from compiler.ir import CompileError
from compiler.plan.options import ORDERS, STRATEGIES, Options
from hw.contract.params import preset
from hw.image import Image
from tests.caesura.commands.test_batch import dynamic_model
from tests.support.images import copy_image
from tests.support.networks import DIGITS
from tests.system.command import caesura_command

COMMANDS = typer.main.get_command(cli.app).commands
COMPILING = ("run", "compile", "profile", "retime", "serve")
OWN = (
    "--preset",
    "--params",
    "--set",
    "--engines",
    "--fallback",
    "--dim",
    "--batch",
    "--jobs",
    "--no-cache",
    "--from-plan",
)
#: What each flag of ``Options`` is given, and the value of its field then, which is not the default.
GIVEN = {
    "--placed": ([], True),
    "--lv2-limit": (["4096"], 4096),
    "--no-split": ([], False),
    "--no-regions": ([], False),
    "--order": ([ORDERS[1]], ORDERS[1]),
    "--objective": (["dram"], "dram"),
    "--trade": (["5%"], 0.05),
    "--budget": (["500ms"], 0.5),
    "--cancel-interval": (["0"], 0),
    "--cancel-at": ([STRATEGIES[2]], STRATEGIES[2]),
    "--cancel-max-live": (["1"], 1),
    "--cancel-spill-bound": (["0"], 0),
}
#: The compiler's other flags, what they are given, and the argument of ``api.compile_with_report`` that follows.
GIVEN_BESIDE = {
    "--engines": (["auto"], {"engines": "auto"}),
    "--fallback": ([], {"fallback": True}),
    "--dim": (["batch=3"], {"sizes": {"batch": 3}}),
    "--batch": (["2"], {"batch": 2}),
    "--jobs": (["1"], {"jobs": 1}),
    "--no-cache": ([], {"cache": False}),
}


def flags_of_command(name: str) -> set[str]:
    return {flag for one in COMMANDS[name].params for flag in one.opts if flag.startswith("--")}


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """What ``api.compile_with_report`` is called with by a command, which ends there."""
    onnx.save(dynamic_model(), tmp_path / "m.onnx")

    def called(command: str, *arguments: object) -> dict:
        seen: dict = {}

        def compile_with_report(path, params, **more):
            seen.update(path=path, params=params, **more)
            raise CompileError("that was all")

        monkeypatch.setattr(api, "compile_with_report", compile_with_report)
        output = ["-o", tmp_path / "m.cimg"] if command == "compile" else []
        code, _, err = caesura_command(command, tmp_path / "m.onnx", *output, *arguments)
        assert code == 2 and "that was all" in err, err
        return seen

    return called


def test_commands_that_compile_have_all_flags():
    wanted = {*OWN, *(flag.name for flag in OPTION_FLAGS)}
    assert wanted == {*OWN, *GIVEN} and {*GIVEN_BESIDE} < wanted
    for name in COMPILING:
        assert wanted <= flags_of_command(name), name


def test_no_other_command_has_some_of_them():
    """A command that begins to compile takes all of them; ``memory`` compiles for its curve alone."""
    alone = {"--engines", "--no-cache", "--batch", *GIVEN} - {"--budget"}  # benchmarks have a budget, too
    assert {name for name in COMMANDS if flags_of_command(name) & alone} == {*COMPILING, "memory"}


@pytest.mark.parametrize("command", COMPILING)
def test_help_names_them(command):
    code, out, err = caesura_command(command, "--help")
    assert (code, err) == (0, "") and all(flag in out for flag in (*OWN, *GIVEN))


@pytest.mark.parametrize("flag", OPTION_FLAGS, ids=lambda flag: flag.name)
@pytest.mark.parametrize("command", COMPILING)
def test_a_flag_arrives_at_its_option_alone(compiled, command, flag):
    given, value = GIVEN[flag.name]
    options = compiled(command, flag.name, *given)["options"]
    assert getattr(options, flag.field) == value != getattr(Options(), flag.field)
    assert {one.name for one in OPTION_FLAGS if getattr(options, one.field) != one.default} == {flag.name}


@pytest.mark.parametrize("flag", GIVEN_BESIDE)
@pytest.mark.parametrize("command", COMPILING)
def test_a_flag_beside_the_options_arrives(compiled, command, flag):
    plain, seen = compiled(command), compiled(command, flag, *GIVEN_BESIDE[flag][0])
    same = plain.keys() - {"told"}  # a function that is made anew
    changed = {name: seen[name] for name in same if seen[name] != plain[name]}
    assert changed == GIVEN_BESIDE[flag][1]


@pytest.mark.parametrize("command", COMPILING)
def test_without_flags_all_is_the_default(compiled, command):
    seen = compiled(command)
    assert seen["options"] == Options() and seen["params"] == preset("tiny")
    rest = {name: seen[name] for name in ("engines", "fallback", "batch", "sizes", "jobs", "cache")}
    assert rest == {"engines": None, "fallback": False, "batch": 1, "sizes": {}, "jobs": None, "cache": True}


@pytest.mark.parametrize("command", COMPILING)
def test_the_machine_arrives(compiled, command, tmp_path):
    (tmp_path / "p.toml").write_text('preset = "base"\nengines = 1\n')
    assert compiled(command, "--preset", "base")["params"] == preset("base")
    seen = compiled(command, "--params", tmp_path / "p.toml", "--set", "lv2_bytes=1MiB", "--set", "engines=2")["params"]
    assert (seen.rows, seen.engines, seen.lv2_bytes) == (preset("base").rows, 2, 1 << 20)


@pytest.mark.parametrize("flag", [*GIVEN, *GIVEN_BESIDE])
@pytest.mark.parametrize("command", ["run", "profile", "retime", "serve"])
def test_an_image_takes_no_flag_of_the_compiler(command, flag, tmp_path):
    copy_image(preset("tiny")).save(tmp_path / "a.cimg")
    given = {**GIVEN, **GIVEN_BESIDE}[flag][0]
    code, out, err = caesura_command(command, tmp_path / "a.cimg", flag, *given)
    told = " ".join(err.split())
    assert (code, out) == (2, "")
    assert f"options of the compiler need the .onnx file: leave out {flag}" in told and told.count("--") == 1


@pytest.mark.parametrize("command", ["run", "profile", "retime", "serve"])
def test_an_image_is_not_run_with_another_dram_than_it_was_compiled_for(command, tmp_path):
    copy_image(preset("tiny")).save(tmp_path / "a.cimg")
    code, out, err = caesura_command(command, tmp_path / "a.cimg", "--set", "dram_latency=200")
    assert (code, out) == (2, "")
    told = f"was compiled for dram_latency={preset('tiny').dram_latency}, and its bounds do not hold for 200"
    assert told in " ".join(err.split())


def test_a_machine_is_no_flag_of_the_compiler():
    assert Compilation(preset="base", changes=("engines=1",)).compiler_flags() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "soon"], "--budget must be a time such as 10s or 500ms, not 'soon'"),
        (["--engines", "many"], "--engines must be a number of engines from 1 on, or auto, not 'many'"),
        (["--dim", "seq"], "--dim 'seq': must be NAME=SIZE"),
        (["--preset", "huge"], "no preset named 'huge'"),
        (["--lv2-limit", "0"], "--lv2-limit must be bytes, such as 65536 or 64KiB, or all, not '0'"),
        (["--lv2-limit", "some"], "or all, not 'some'"),
        (["--trade", "200%"], "--trade must be a share, such as 5% or 0.05, not '200%'"),
        (["--order", "random"], "order must be one of search, source"),
        (["--cancel-at", "layers"], "cancel_at must be one of both, intervals, spills, not 'layers'"),
    ],
)
@pytest.mark.parametrize("command", COMPILING)
def test_a_value_that_cannot_be(command, arguments, message, tmp_path):
    output = ["-o", tmp_path / "x.cimg"] if command == "compile" else []
    code, out, err = caesura_command(command, DIGITS, *output, *arguments)
    assert (code, out) == (2, "") and message in " ".join(err.split())


@pytest.mark.parametrize(("given", "limit"), [("all", "all"), ("64KiB", 65536), ("1 MiB", 1 << 20), ("4096", 4096)])
def test_a_limit_of_lv2_has_units(given, limit):
    assert lv2_limit(given) == limit


def test_a_compilation_says_what_it_claims(tmp_path):
    output = tmp_path / "x.cimg"
    _, told, _ = caesura_command("compile", DIGITS, "-o", output)
    assert "of 131,072 bytes of LV2: by price 0.0% more cycles than with --lv2-limit all" in " ".join(told.split())
    claimed = Image.load(output).meta.lv2_bytes
    assert claimed < 131_072 and f"claims {claimed:,} of" in caesura_command("info", output)[1]
    fields = json.loads(caesura_command("compile", DIGITS, "-o", output, "--json")[1])
    assert fields["lv2_bytes"] == claimed and fields["lv2_priced_loss"] == 0
    _, told, _ = caesura_command("compile", DIGITS, "-o", output, "--lv2-limit", "all")
    assert "another model that claims more than 0 takes turns with it" in " ".join(told.split())


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--cancel-interval", "-1"]])
def test_a_number_that_is_too_small(arguments):
    code, _, err = caesura_command("retime", DIGITS, *arguments)
    assert code == 2 and f"Invalid value for '{arguments[0]}'" in err


def test_profile_keeps_the_order_of_the_model(tmp_path):
    arguments = ("profile", DIGITS, "--backend", "model", "-o", tmp_path / "x.cimg", "--json")
    layers = [
        len(json.loads(caesura_command(*arguments, *more)[1])["layers"])
        for more in ((), ("--order", "source", "--no-regions"))
    ]
    assert layers[0] < layers[1]
