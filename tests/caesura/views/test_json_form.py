import json
import math

import pytest

from caesura.views.tables import json_text


def test_numbers_that_are_none_are_null():
    value = {"a": [1.5, math.nan, (math.inf, 2)], "b": {"c": -math.inf}, "d": "NaN", "e": True}
    found = json.loads(json_text(value), parse_constant=lambda name: pytest.fail(name))
    assert found == {"a": [1.5, None, [None, 2]], "b": {"c": None}, "d": "NaN", "e": True}
