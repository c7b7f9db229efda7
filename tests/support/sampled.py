"""Parameters of which a sample runs in ``make test``, and all in ``make test-all``."""

from collections.abc import Collection
from typing import Any

import pytest


def sampled(cases: Collection[Any], count: int) -> list[Any]:
    """Return ``cases`` (a tuple: one value for each argument) with the mark ``slow`` on all but ``count`` of them,
    which lie evenly among them, the first with them. Raises ValueError for a sample that is empty or no part."""
    if not 0 < count < len(cases):
        raise ValueError(f"a sample of {count} of {len(cases)}")
    taken = {place * len(cases) // count for place in range(count)}
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if place in taken else pytest.mark.slow)
        for place, case in enumerate(cases)
    ]
