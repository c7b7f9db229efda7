"""Commands that pages show can be given: the command is there, and has the options."""

import re
import shlex

import pytest
import typer.main

from caesura.cli import app
from tests.docs.pages import PAST, ROOT, pages

#: In a block of code, or in code style.
LINE = re.compile(r"^ *(?:\$ )?(caesura [a-z].*)$|`(caesura [a-z][^`]*)`", re.MULTILINE)
HERE = [page for page in pages() if not page.startswith(PAST)]


def commands(page):
    text = (ROOT / page).read_text().replace("\\\n", " ")
    return [one or other for one, other in LINE.findall(text)]


def wrong(line):
    """What of a command does not exist, None if all does."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None  # prose
    command, rest = typer.main.get_command(app), words[1:]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return rest[0]
        command, rest = command.commands[rest[0]], rest[1:]
    if command.context_settings.get("ignore_unknown_options"):
        return None  # they are somebody else's
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    options = [word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)]
    return next((option for option in options if option not in known | {"--help"}), None)


@pytest.mark.parametrize("page", HERE)
def test_commands_of_a_page_exist(page):
    assert {line: found for line in commands(page) if (found := wrong(line))} == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("caesura run MODEL.onnx --input X.npz --check  # compare", None),
        ("caesura run MODEL.onnx --inputs X.npz", "--inputs"),
        ("caesura ran MODEL.onnx", "ran"),
        ("caesura kernels build M.onnx -o k.ckl", None),
        ("caesura kernels make M.onnx", "make"),
    ],
)
def test_a_command_that_does_not_exist_is_seen(line, found):
    assert wrong(line) == found


def test_commands_are_seen():
    assert sum(len(commands(page)) for page in HERE) > 150
