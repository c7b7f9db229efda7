"""What the driver's tests run on."""

import pytest

from tests.support.fake_soc import FakeSoc
from tests.support.model_soc import ModelSoc


@pytest.fixture(params=[FakeSoc, ModelSoc], ids=["fake", "model"])
def soc(request):
    """A class of SoCs: the fake one, whose time is coarse, and the fast model, where all parts are at work."""
    return request.param
