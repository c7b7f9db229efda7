"""What holds for all tests."""

import gc

import pytest
from hypothesis import HealthCheck, settings

import caesura
from caesura.commands.options import VARIABLE
from sim.backends import DEFAULT_BACKEND

# A front keeps what it was asked for: not what some test puts in its place in ``caesura.api``.
assert caesura.open and caesura.compile

# How long an example takes says nothing on a machine with other work.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("untimed")


def pytest_collection_finish():
    """Let the garbage collector pass over what imports and 12,000 tests are, and look less often: a twentieth of the
    time of all tests."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(autouse=True)
def default_backend(monkeypatch):
    """Commands that are given no backend run on the RTL, whether its simulator is built already or not."""
    monkeypatch.setenv(VARIABLE, DEFAULT_BACKEND)
