"""The cache of kernels on disk: checked when read, bounded, and never in the way."""

import os

import pytest

from caesura.lengths.kernel_source import KernelFiles, read_kernels
from hw.contract.params import preset
from hw.image.image import ImageError
from hw.image.kernel_attributes import KernelAttributes
from sim.cache_folder import BLOCK
from tests.support.images import copy_image

TINY = preset("tiny")


def made(value):
    image = copy_image(TINY)
    image.meta.kernel_attributes = about(value).to_dict()
    return image


def about(value):
    return KernelAttributes.of({"model": "copy"}, "length", value)


def test_what_was_kept_is_found(tmp_path):
    files = KernelFiles(tmp_path / "kernels")
    assert files.find("origin", about(5)) is None
    files.keep("origin", made(5))
    found = files.find("origin", about(5))
    assert found.to_bytes() == made(5).to_bytes()
    assert files.find("another", about(5)) is None and files.find("origin", about("5..6")) is None
    assert [each.name.count(".tmp") for each in files.folder.iterdir()] == [0]


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: raw[:100] + b"x" + raw[101:], lambda raw: b""])
def test_a_damaged_file_is_made_again_or_refused_by_name(tmp_path, damage):
    files = KernelFiles(tmp_path)
    files.keep("origin", made(5))
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ImageError, match=path.name):
        read_kernels(tmp_path)
    assert files.find("origin", about(5)) is None
    assert not path.exists()
    files.keep("origin", made(5))
    assert files.find("origin", about(5)) is not None


def test_a_file_of_another_kernel_is_not_taken(tmp_path):
    files = KernelFiles(tmp_path)
    files.keep("origin", made(5))
    (path,) = tmp_path.iterdir()
    made(6).save(path)
    assert files.find("origin", about(5)) is None


def test_the_size_is_bounded_and_the_oldest_goes(tmp_path):
    size = max(BLOCK, len(made(5).to_bytes()))
    files = KernelFiles(tmp_path, most=3 * size + 50)
    for age, value in enumerate((5, 6, 7)):
        files.keep("origin", made(value))
        newest = max(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime)
        os.utime(newest, (1000 + age, 1000 + age))
    assert files.find("origin", about(5)) is not None  # used just now, so 6 is the oldest
    files.keep("origin", made(8))
    assert [files.find("origin", about(value)) is not None for value in (5, 6, 7, 8)] == [True, False, True, True]


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    files = KernelFiles(tmp_path / "file")
    files.keep("origin", made(5))
    assert files.find("origin", about(5)) is None


def test_a_library_is_read_from_a_folder(tmp_path):
    made(5).save(tmp_path / "a.cimg")
    made("..").save(tmp_path / "b.cimg")
    assert [image.meta.kernel_attributes["class_2"]["length"] for image in read_kernels(tmp_path)] == [5, ".."]
    copy_image(TINY).save(tmp_path / "c.cimg")
    with pytest.raises(ImageError, match=r"c\.cimg: the image is no kernel"):
        read_kernels(tmp_path)
