"""Tables as comma-separated values."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """A header and a line for each of ``rows``, which all have the same columns; None is an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
