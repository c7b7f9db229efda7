"""The decoder on the fast model: its text is the integer reference's, interrupted within every token or not."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import caesura
from examples.words import MODEL, demo, device
from examples.words.reference import IntegerStepper
from examples.words.tokens import encode
from hw.contract.params import preset
from tests.support.documented import check_documented, documented

compiled = functools.cache(device.compiled)


@pytest.fixture
def run_demo(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["demo", *arguments])
        monkeypatch.setattr(demo, "compiled", compiled)
        monkeypatch.setenv("COLUMNS", "120")
        code = demo.main()
        return code, capsys.readouterr().out

    return run


FEW = ("--steps", "3", "--backend", "model")
TEXT = "The finally clause is executed."
READ = 7  #: tokens: five of the prompt, and two of the three that are written


def cells(out: str, row: str) -> list[str]:
    """The cells of a row of the table."""
    (line,) = [line for line in out.splitlines() if row in line]
    return [cell.strip() for cell in line.strip("│").split("│")][1:]


@pytest.mark.parametrize("weights", ["int8", pytest.param("int4", marks=pytest.mark.slow)])
def test_interrupted_within_every_token(run_demo, weights):
    code, out = run_demo(*FEW, "--interrupted", "--weights", weights)
    assert code == 0
    assert out.count(TEXT) == 2 * (weights == "int8")
    assert cells(out, "interrupted  ") == ["0", str(READ)]
    for row in ("read", "equal the integer reference", "equals onnxruntime's"):
        assert cells(out, row) == [str(READ)] * 2
    assert "The text is the same, and every score: 7 of 7 tokens were interrupted; digits was right 7 times" in out


def test_a_score_that_differs_from_the_reference_fails(run_demo, monkeypatch):
    step = IntegerStepper.step

    def other(stepper, token):
        scores = step(stepper, token)
        if stepper.position == READ:
            scores = np.nextafter(scores, np.float32(np.inf))
        return scores

    monkeypatch.setattr(IntegerStepper, "step", other)
    code, out = run_demo(*FEW)
    assert code == 1
    assert cells(out, "equal the integer reference") == [str(READ - 1)]


@pytest.mark.parametrize("changed", ["scores", "digits"])
def test_an_interruption_that_changes_something_fails(run_demo, monkeypatch, changed):
    step = device.Interrupted.step

    def other(again, token):
        made = step(again, token)
        if len(again.responses) == READ - 1:
            if changed == "digits":
                again.correct -= 1
            else:
                made = replace(made, scores=made.scores[::-1])
        return made

    monkeypatch.setattr(device.Interrupted, "step", other)
    code, out = run_demo(*FEW, "--interrupted")
    assert code == 1
    assert ("The text or a score DIFFERS" in out) == (changed == "scores")
    assert ("digits was right 6 times" in out) == (changed == "digits")


def test_two_texts_in_turns():
    """Each finds its own keys and values, though they share a loaded model."""
    texts = [encode("The finally clause is"), encode("If a name is bound,")]
    exact = [IntegerStepper(MODEL) for _ in texts]
    image = compiled("int8", preset("base"))
    with caesura.open(image.params, "model") as opened:
        model = opened.load(image)
        with device.Undisturbed(model) as first, device.Undisturbed(model) as second:
            for tokens in zip(*texts, strict=False):
                for token, steps, reference in zip(tokens, (first, second), exact, strict=True):
                    np.testing.assert_array_equal(steps.step(token).scores, reference.step(token))


@pytest.mark.parametrize(
    ("prompt", "message"), [("", "a prompt of 0 tokens; it must have 1 to 256"), ("naïve", "'ï' is not ASCII")]
)
def test_a_prompt_that_cannot_be_read(run_demo, capsys, prompt, message):
    with pytest.raises(SystemExit) as ended:
        run_demo(prompt)
    assert ended.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.slow
def test_what_the_page_shows(run_demo):
    """On the RTL, to the cycle."""
    command, *block = documented("examples/words/README.md", "$ python -m examples.words.demo")
    code, out = run_demo(*command.split()[4:])
    assert code == 0
    check_documented(block, out)
