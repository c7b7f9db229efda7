import numpy as np
import pytest

from caesura.samples import load_samples, random_samples
from hw.contract.params import preset
from hw.image.image import PortInfo
from sw.runtime import InputError
from tests.support.images import copy_image

IMAGE = copy_image(preset("tiny"))
DATA = np.arange(3 * 64, dtype=np.float32).reshape(3, 8, 8)


def saved(tmp_path, **arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    return tmp_path / "x.npz"


@pytest.mark.parametrize(
    "arrays",
    [
        {"in": DATA},
        {"in": DATA[:, np.newaxis]},
        {"input": DATA, "label": np.zeros(3)},
        {"whatever": DATA},
    ],
    ids=["first axis", "leading axis", "called input", "only array"],
)
def test_samples_are_found_and_split(tmp_path, arrays):
    samples = load_samples(saved(tmp_path, **arrays), IMAGE, 2)
    assert [sample["in"].shape for sample in samples] == [(1, 8, 8)] * 2
    np.testing.assert_array_equal(samples[1]["in"][0], DATA[1])


def test_one_sample(tmp_path):
    (sample,) = load_samples(saved(tmp_path, x=DATA[:1]), IMAGE, 1)
    np.testing.assert_array_equal(sample["in"], DATA[:1])


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"a": DATA, "b": DATA}, r"no array for input 'in'; it holds a, b"),
        ({"in": DATA[:, :7]}, r"input 'in': shape \[3, 7, 8\], expected \[1, 8, 8\]"),
        ({"in": DATA[:1]}, "input 'in' has 1 samples, 2 wanted; lower --samples"),
        ({"in": np.float32(3)}, r"input 'in': shape \[\]"),
    ],
)
def test_unfitting_files_are_refused(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message):
        load_samples(saved(tmp_path, **arrays), IMAGE, 2)


def test_unreadable_files_are_refused(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"not a zip file")
    with pytest.raises(InputError, match=r"x\.npz: not a readable"):
        load_samples(tmp_path / "x.npz", IMAGE, 1)
    with pytest.raises(InputError, match=r"y\.npz: not a readable"):
        load_samples(tmp_path / "y.npz", IMAGE, 1)


def test_random_inputs_are_seeded_and_cover_the_range():
    first, again, other = (random_samples(IMAGE, 2, seed)[1]["in"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.dtype == np.float32 and first.shape == (1, 8, 8)
    assert -65.5 <= first.min() < -40 and 40 < first.max() <= 62


def test_random_inputs_of_other_types():
    image = copy_image(preset("tiny"))
    image.meta.inputs = [
        PortInfo(name="bytes", dtype="uint8", shape=[100], tensor="x", perm=[0]),
        PortInfo(name="floats", dtype="float32", shape=[2, 3], tensor="x", perm=[0, 1]),
    ]
    (sample,) = random_samples(image, 1, 0)
    assert sample["bytes"].dtype == np.uint8 and sample["bytes"].max() > 200
    assert sample["floats"].dtype == np.float32
