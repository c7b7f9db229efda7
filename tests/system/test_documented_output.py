"""Example output in README.md and of the C driver is what the commands print, to the cycle; that of driving is in
tests/examples."""

import pytest

from examples.c_driver import demo as c_driver
from examples.digits import demo
from tests.support.documented import ROOT, check_documented, documented
from tests.system.command import caesura_command

WIDTH = "120"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    """The documented commands name files relative to it, in a terminal that is wide enough."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", WIDTH)


def test_digits_with_check():
    arguments = ("examples/digits/digits.onnx", "--input", "examples/digits/digits_samples.npz", "--check")
    code, out, err = caesura_command("run", *arguments)
    assert code == 0, err
    check_documented(documented("README.md", "digits on tiny"), out)


def test_make_demo(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["demo"])
    monkeypatch.setattr("sys.executable", str(ROOT / ".venv/bin/python"))
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert demo.main() == 0
    check_documented(documented("README.md", "Caesura is an open NPU"), capsys.readouterr().out)


def test_c_driver(capsys):
    assert c_driver.main([]) == 0
    check_documented(documented("examples/c_driver/README.md", "digits.onnx on"), capsys.readouterr().out)


def test_scenario():
    command, *block = documented("README.md", "$ caesura scenario")
    code, out, err = caesura_command(*command.split()[2:])
    assert code == 0, err
    check_documented(block, out)


@pytest.mark.parametrize(
    ("block", "same"),
    [
        (["a 1", "b 2"], True),
        (["a 1", "  ... 1 more ...", "c 4 in 1.5 s"], False),
        (["a 1", "  ... 1 more ...", "c 3 in 7.0 s"], True),
        (["a 1", "c 3 in 1.5 s"], False),
        (["a 2"], False),
        (["b 2", "  ... 1 more ...", "a 1"], False),
    ],
)
def test_a_difference_is_found(block, same):
    output = "first\na 1 \nb 2\nc 3 in 1.5 s\n"
    if same:
        check_documented(block, output)
    else:
        with pytest.raises(AssertionError, match="the documentation shows"):
            check_documented(block, output)
