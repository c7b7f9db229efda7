"""What holds for all tests."""

import pytest
from hypothesis import HealthCheck, settings

from caesura.commands.options import VARIABLE
from sim.backends import DEFAULT_BACKEND

# How long an example takes says nothing on a machine with other work.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def default_backend(monkeypatch):
    """Commands that are given no backend run on the RTL, whether its simulator is built already or not."""
    monkeypatch.setenv(VARIABLE, DEFAULT_BACKEND)
