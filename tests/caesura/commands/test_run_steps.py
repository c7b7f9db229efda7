"""``caesura run`` with sequences of tokens: each a conversation, token by token."""

import json

import numpy as np
import onnx
import pytest

from compiler import import_model, reference
from tests.support.small_step import SIZE, small_step
from tests.system.command import caesura_command, run_report

TOKENS = np.random.default_rng(2).integers(0, 40, (2, 6))


@pytest.fixture
def files(tmp_path):
    onnx.save(small_step(), tmp_path / "step.onnx")
    np.savez(tmp_path / "tokens.npz", ids=TOKENS)
    return tmp_path


def run_of(files, *more: object) -> tuple[object, ...]:
    return (files / "step.onnx", "--input", files / "tokens.npz", "--preset", "tiny", "--backend", "model", *more)


def test_each_sequence_is_a_conversation(files):
    report = run_report(*run_of(files, "--check", "--output", files / "out.npz"))
    assert [(row["sequence"], row["steps"], row["check"]) for row in report["sequences"]] == [
        (0, 6, "equal"), (1, 6, "equal"),
    ]  # fmt: skip
    assert all(0 < row["cycles"] <= row["latency_cycles"] for row in report["sequences"])
    graph, found = import_model(small_step(), sizes={"past": 5}), np.load(files / "out.npz")
    for number, tokens in enumerate(TOKENS):
        kept = {name: np.zeros((1, 2, 5, SIZE), np.float32) for name in ("past_key", "past_value")}
        for at, token in enumerate(tokens):
            given = {"ids": np.array([[token]]), "position": np.array([[at]]), "past": at, **kept}
            made = reference.run(graph, given)
            kept = {"past_key": made["key"][:, :, :5], "past_value": made["value"][:, :, :5]}
            np.testing.assert_array_equal(found[f"y.{number}"][at], made["y"])


def test_sequences_share_steps(files):
    """Three of different lengths at two places: the third joins where the first has ended."""
    texts = np.full((3, 6), -1)
    for row, length in enumerate((2, 6, 3)):
        texts[row, :length] = TOKENS[0, :length] if row < 2 else TOKENS[1, :length]
    np.savez(files / "tokens.npz", **{f"ids.{i}": text[text >= 0] for i, text in enumerate(texts)})
    report = run_report(*run_of(files, "--check", "--sequences", 2))
    assert [(row["steps"], row["check"]) for row in report["sequences"]] == [(2, "equal"), (6, "equal"), (3, "equal")]


def test_the_memory_may_be_longer_and_sequences_fewer(files):
    (row,) = run_report(*run_of(files, "--check", "--dim", "past=20", "--samples", 1))["sequences"]
    assert row["steps"] == 6 and row["check"] == "equal"


def test_a_step_that_differs_is_told(files, monkeypatch):
    from sw.runtime import Conversation

    monkeypatch.setattr(Conversation, "rows", lambda self, most: 0)  # every row goes to the first place
    code, out, _ = caesura_command("run", *run_of(files, "--check", "--json"))
    assert code == 1 and json.loads(out)["sequences"][0]["check"] == "step 1: y differs"


def test_a_memory_that_is_too_short_is_refused(files):
    code, _, err = caesura_command("run", *run_of(files, "--dim", "past=3"))
    assert code == 2 and "4 steps fill its state; compile it for a longer one" in " ".join(err.split())


@pytest.mark.parametrize("flag", [("--csv",), ("--profile",), ("--trace", "t.json")])
def test_flags_about_one_inference_are_refused(files, flag):
    code, _, err = caesura_command("run", *run_of(files, *flag))
    assert code != 0 and f"leave {flag[0]} out" in " ".join(err.split())
