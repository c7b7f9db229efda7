"""Files with sequences for step models."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from caesura import step_samples
from caesura.step_samples import sequences_of
from sw.runtime import InputError

TOKENS = np.arange(12).reshape(3, 4)


@dataclass
class Port:
    name: str = "input_ids"
    shape: list[int] = field(default_factory=lambda: [1, 1])
    dtype: str = "int64"


PORTS = [Port(), Port("position_ids")]


def saved(tmp_path, **arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    return tmp_path / "x.npz"


def _tokens(sequences) -> list[list[int]]:
    return [[int(step["input_ids"].item()) for step in sequence] for sequence in sequences]


@pytest.mark.parametrize(
    ("arrays", "wanted"),
    [
        ({"input_ids": TOKENS}, TOKENS.tolist()),
        ({"input_ids": TOKENS[:, :1]}, [[0], [4], [8]]),
        ({"input_ids": TOKENS[:, :, None, None]}, TOKENS.tolist()),
        ({"input_ids": TOKENS[1]}, [[4, 5, 6, 7]]),
        ({"input_ids.0": TOKENS[0], "input_ids.1": TOKENS[1:2, :2]}, [[0, 1, 2, 3], [4, 5]]),
        ({"input": TOKENS, "label": np.zeros(3)}, TOKENS.tolist()),
        ({"prompts": TOKENS}, TOKENS.tolist()),
    ],
)
def test_tokens_of_each_step_and_positions_that_count(tmp_path, arrays, wanted):
    found = sequences_of(saved(tmp_path, **arrays), PORTS)
    assert _tokens(found) == wanted
    for sequence in found:
        assert [step["position_ids"].tolist() for step in sequence] == [[[at]] for at in range(len(sequence))]
        assert {step["input_ids"].shape for step in sequence} == {(1, 1)}


def test_a_npy_file_and_fewer_sequences(tmp_path):
    np.save(tmp_path / "x.npy", TOKENS)
    assert _tokens(sequences_of(tmp_path / "x.npy", PORTS, 2)) == TOKENS[:2].tolist()
    with pytest.raises(InputError, match=r"x\.npy: it has 3 sequences, 4 wanted; lower --samples"):
        sequences_of(tmp_path / "x.npy", PORTS, 4)


def test_positions_and_other_inputs_of_the_file(tmp_path):
    vectors = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    path = saved(tmp_path, input_ids=TOKENS, position_ids=TOKENS + 7, x=vectors)
    found = sequences_of(path, [*PORTS, Port("x", [1, 1, 2], "float32")])
    assert found[1][2]["position_ids"].item() == 13
    np.testing.assert_array_equal(found[1][2]["x"], [[[12, 13]]])


def test_a_position_of_another_kind_does_not_count(tmp_path):
    with pytest.raises(InputError, match="no array for input 'position'"):
        sequences_of(saved(tmp_path, input_ids=TOKENS), [Port(), Port("position", dtype="float32")])


def test_steps_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(step_samples, "MOST_STEPS", 9)
    path = saved(tmp_path, input_ids=TOKENS)
    assert [len(sequence) for sequence in sequences_of(path, PORTS)] == [4, 4]
    monkeypatch.setattr(step_samples, "MOST_STEPS", 3)
    assert [len(sequence) for sequence in sequences_of(path, PORTS)] == [3]


@pytest.mark.parametrize(
    ("arrays", "ports", "message"),
    [
        ({"a": TOKENS, "b": TOKENS}, PORTS, r"no array for input 'input_ids'; it holds a, b"),
        ({"input_ids": TOKENS}, PORTS[1:], "no input but states and positions"),
        ({"input_ids": np.zeros((3, 0), int)}, PORTS, "steps of sequence 0: 'input_ids' 0; all inputs have as many"),
        ({"input_ids": np.array(4)}, PORTS, r"shape \[\], expected \(sequences, steps\) of \[1, 1\]"),
        ({"input_ids": np.zeros((3, 4, 2), int)}, PORTS, r"shape \[3, 4, 2\], expected \(sequences, steps\)"),
        (
            {"input_ids": TOKENS, "position_ids": TOKENS[:, :2]}, PORTS,
            "steps of sequence 0: 'input_ids' 4, 'position_ids' 2; all inputs have as many",
        ),
    ],
)  # fmt: skip
def test_unfitting_files_are_refused(tmp_path, arrays, ports, message):
    with pytest.raises(InputError, match=message):
        sequences_of(saved(tmp_path, **arrays), ports)
