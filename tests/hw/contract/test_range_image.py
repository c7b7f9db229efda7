"""The container of range kernels: every length comes out as it went in, damage and nonsense are refused by name."""

import hashlib
import json
import random
import struct
import zlib

import pytest

from hw.contract.image import ImageError
from hw.contract.kernel_attributes import KernelAttributes
from hw.contract.params import preset
from hw.contract.range_image import RangeImage, Stretch
from tests.support.images import SIZE, copy_image

TINY = preset("tiny")
HEADER = struct.Struct("<4sHHQQQ32s")


def image_for(length):
    """A copy of ``length`` bytes in place of SIZE."""
    body = f"LD2 src_seg=2 dst_seg=6 len={length} hi={length} hi1=1 hi0=1 signal=0\n"
    body += f"ST2 src_seg=6 dst_seg=3 len={length} hi={length} hi1=1 hi0=1 wait=0\nEND\n"
    image = copy_image(TINY, body)
    for tensor in image.meta.tensors:
        tensor.shape = [1, 1, length]
    for port in (*image.meta.inputs, *image.meta.outputs):
        port.shape = [1, 1, length] if port.name == "in" else [1, length]
    image.weights = bytes(range(length % 3))
    image.meta.segment_sizes[1] = length % 3
    image.host_models = [bytes([length])]
    image.to_bytes()  # notes the sizes of host models
    return image


def made():
    """Two stretches: 5 to 9 in steps of 2, 11 to 20."""
    lengths = (range(5, 10, 2), range(11, 21))
    stretches = tuple(Stretch.of({length: image_for(length) for length in part}) for part in lengths)
    return RangeImage(KernelAttributes.of({"head_size": 80}, "length", "5..20"), stretches)


RAW = made().to_bytes()


def test_every_length_comes_out_again():
    found = RangeImage.from_bytes(RAW)
    assert found.lengths == [5, 7, 9, *range(11, 21)] and found.attributes == made().attributes
    for length in found.lengths:
        assert length in found
        assert found.image(length).to_bytes() == image_for(length).to_bytes()
    assert 6 not in found and 21 not in found
    with pytest.raises(KeyError, match="no image for length 6"):
        found.image(6)
    assert found.to_bytes() == RAW


def test_relocation_leaves_the_kernel_as_it_is():
    found = RangeImage.from_bytes(RAW)
    found.image(20).meta.tensors[0].shape[2] = 1
    found.image(12).meta.jobs.clear()
    assert found.image(20).to_bytes() == image_for(20).to_bytes()


def test_damage_is_noticed(tmp_path):
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(200):
        raw = bytearray(RAW)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        with pytest.raises(ImageError, match="here"):
            RangeImage.from_bytes(bytes(raw), "here")
        with pytest.raises(ImageError):
            RangeImage.from_bytes(RAW[: rng.randrange(len(RAW))])
    with pytest.raises(ImageError, match="cannot be read"):
        RangeImage.load(tmp_path / "none.crng")


def repacked(change):
    """RAW with ``change`` applied to the index, and a checksum that is right."""
    _, _, _, packed, _, _, _ = HEADER.unpack_from(RAW)
    body = RAW[HEADER.size :]
    index = json.loads(zlib.decompress(body[:packed]))
    change(index)
    raw = json.dumps(index).encode()
    index_bytes, arrays = zlib.compress(raw), body[packed:]
    digest = hashlib.sha256(index_bytes + arrays).digest()
    return HEADER.pack(b"CRNG", 1, 0, len(index_bytes), len(raw), len(arrays), digest) + index_bytes + arrays


NONSENSE = {
    "no stretch": lambda index: index["stretches"].clear(),
    "other attributes": lambda index: index["kernel_attributes"]["class_2"].update(length="5..21"),
    "no attributes": lambda index: index.pop("kernel_attributes"),
    "lengths down": lambda index: index["stretches"].reverse(),
    "step 0": lambda index: index["stretches"][0].update(lengths=[5, 10, 0]),
    "more lengths": lambda index: index["stretches"][1].update(lengths=[11, 20, 1]),
    "short column": lambda index: index["stretches"][1]["columns"][0][1].pop(),
    "short curve": lambda index: index["stretches"][0]["curves"][0][1].pop(),
    "no such array": lambda index: index["stretches"][0]["words"].__setitem__(0, [0, 1, 2, 3, 4, 99]),
    "arrays swapped": lambda index: index["stretches"][0]["words"][0].reverse(),
    "huge array": lambda index: index["arrays"][0].__setitem__(1, 1 << 40),
    "negative array": lambda index: index["arrays"][0].__setitem__(0, -1),
    "a list": lambda index: index["stretches"].__setitem__(0, []),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_refused(what):
    with pytest.raises(ImageError):
        RangeImage.from_bytes(repacked(NONSENSE[what]))
    assert RangeImage.from_bytes(repacked(lambda index: None)).lengths == made().lengths


def test_a_relocated_image_is_checked():
    """A curve that leads nowhere, or to a size that is impossible."""

    def nowhere(index):
        index["stretches"][1]["curves"][0][0] = ["nothing", 3]

    def impossible(index):
        index["stretches"][1]["meta"]["segment_sizes"][2] = SIZE // 8

    for change in (nowhere, impossible):
        with pytest.raises(ImageError, match="length 20"):
            RangeImage.from_bytes(repacked(change)).image(20)


def test_other_versions():
    for at, message in ((0, "not a range kernel"), (4, "format version"), (6, "format version")):
        raw = bytearray(RAW)
        raw[at] += 1
        with pytest.raises(ImageError, match=message):
            RangeImage.from_bytes(bytes(raw))


def test_lengths_must_be_evenly_spaced():
    with pytest.raises(ValueError, match="evenly"):
        Stretch.of({length: image_for(length) for length in (4, 5, 7)})
