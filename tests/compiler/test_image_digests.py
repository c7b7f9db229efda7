"""The compiler decides as it did: the images of models of all kinds are the same, byte by byte."""

import pytest

from tests.compiler.image_digests import HINT, digests, known
from tests.support.image_cases import IMAGES

EVERY = [pytest.param(case, id=case.name, marks=pytest.mark.slow if case.slow else ()) for case in IMAGES]


@pytest.mark.parametrize("case", EVERY)
def test_images_are_what_they_were(case):
    assert digests(case) == known()[case.name], HINT


def test_the_file_holds_all_cases_and_no_others():
    assert list(known()) == [case.name for case in IMAGES]
    assert len({case.name for case in IMAGES}) == len(IMAGES)
