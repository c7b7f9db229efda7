"""What holds for all tests."""

import pytest

from caesura.backends import VARIABLE
from sim.backends import DEFAULT_BACKEND


@pytest.fixture(autouse=True)
def default_backend(monkeypatch):
    """Commands that are given no backend run on the RTL, whether its simulator is built already or not."""
    monkeypatch.setenv(VARIABLE, DEFAULT_BACKEND)
