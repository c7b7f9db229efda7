"""Which backend a command runs on where none is named."""

import pytest

from caesura.commands import options
from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND, MODEL

TINY = preset("tiny")


@pytest.fixture
def built(monkeypatch):
    """No variable, and a set of the names of parameters that have a simulator."""
    names = set()
    monkeypatch.delenv(options.VARIABLE)
    monkeypatch.setattr(options, "_is_built", lambda params: params.name in names)
    return names


def test_a_newcomer_gets_the_fast_model_and_is_told(built, capsys):
    assert options.chosen_backend(None, TINY) == MODEL
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    assert "tiny" in said.err and f"--backend {DEFAULT_BACKEND}" in said.err


def test_the_simulator_that_is_there(built, capsys):
    built.add("tiny")
    assert options.chosen_backend(None, TINY) == DEFAULT_BACKEND
    assert options.chosen_backend("pysim", TINY) == "pysim"
    assert capsys.readouterr().err == ""


def test_the_variable(built, monkeypatch):
    monkeypatch.setenv(options.VARIABLE, "cxxrtl")
    assert options.chosen_backend(None, TINY) == "cxxrtl"
    assert options.chosen_backend(MODEL, TINY) == MODEL


def test_what_is_not_in_the_cache_is_not_built(tmp_path, monkeypatch):
    from sim.rtl import is_built

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not is_built(TINY)
