"""Flags are derived from the fields of a dataclass, with the help from its docstring."""

import inspect
from dataclasses import dataclass, fields

import pytest
import typer
from typer.testing import CliRunner

from caesura.compilation import OPTION_FLAGS, WITHOUT_FLAG
from caesura.compile_flags import FieldFlag, Flag, field_helps, flags_of
from compiler.plan.options import Options


@dataclass(frozen=True)
class MoreOptions(Options):
    """Options, and one more.

    ``fusion``: fuse layers that read each other. This is no part of the help.

    ``depth``: layers that are fused at most; the rest
    is not.
    """

    fusion: bool = True
    depth: int = 3
    ratio: float = 0.5
    pause: float = 1.0
    secret: str = "no"


ADDED = {"depth": Flag(least=2), "pause": Flag("--wait", parse=len, form="such as ...")}


def made() -> dict[str, FieldFlag]:
    """Flags by field, those of ``Options`` left out."""
    without = {"secret", *(field.name for field in fields(Options))}
    return {flag.field: flag for flag in flags_of(MoreOptions, ADDED, without)}


def fields_without_help(options: type, without: tuple[str, ...]) -> list[str]:
    return [field.name for field in fields(options) if field.name not in {*without, *field_helps(options)}]


def test_every_option_of_the_compiler_has_a_flag_with_help():
    assert [flag.field for flag in OPTION_FLAGS] == [
        field.name for field in fields(Options) if field.name not in WITHOUT_FLAG
    ]
    assert fields_without_help(Options, ()) == []
    assert set(WITHOUT_FLAG) <= {field.name for field in fields(Options)}


def test_a_field_that_nobody_explained_is_found():
    assert {"ratio", "pause", "secret"} < set(fields_without_help(MoreOptions, ()))
    assert not {"fusion", "depth"} & set(fields_without_help(MoreOptions, ()))


def test_a_field_that_is_added_has_a_flag_at_once():
    assert {name: flag.name for name, flag in made().items()} == {
        "fusion": "--no-fusion", "depth": "--depth", "ratio": "--ratio", "pause": "--wait"
    }  # fmt: skip
    assert field_helps(MoreOptions) == {
        "fusion": "fuse layers that read each other", "depth": "layers that are fused at most"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ([], (True, 3, 0.5, 1.0)),
        (["--no-fusion", "--depth", "2", "--ratio", "1.5", "--wait", "four"], (False, 2, 1.5, 4)),
    ],
)
def test_values_arrive_at_the_fields(arguments, values):
    flags, seen = made().values(), []

    def command(**given: object) -> None:
        seen.extend(flag.value(given[flag.field]) for flag in flags)

    command.__signature__ = inspect.Signature([flag.parameter for flag in flags])
    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert tuple(seen) == values
    assert CliRunner().invoke(app, ["--depth", "1"]).exit_code == 2
    told = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output.split())
    assert "do not fuse layers that read each other" in told and "layers that are fused at most" in told
