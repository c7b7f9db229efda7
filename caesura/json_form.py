"""Writes JSON that every reader takes: numbers that are none, which JSON does not have, are null. It is ASCII that can
be printed, as all else in text is escaped."""

import json
import math
from typing import Any


def json_text(value: Any, indent: int | None = None) -> str:
    """Return ``value`` as JSON, in which NaN and infinities are null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False).replace("\x7f", "\\u007f")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
