"""Defines what all tables of a scenario file have in common, and the error that says what is wrong with one."""

from typing import Annotated

import pydantic
from pydantic import Field

from caesura.api import UsageError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MOST = 1_000_000  #: layers of a model, requests of a scenario
Count = Annotated[int, Field(ge=1, le=MOST)]


class ScenarioError(UsageError):
    """Says why a scenario cannot be used; names the file, the key, what is wrong and the way out."""


class FileTable(pydantic.BaseModel):
    """Is a table of a scenario file: other keys than its fields are errors, and its values stay as they are."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


def explained(where: str, error: pydantic.ValidationError) -> str:
    """Return what is wrong with the file ``where``: the key, the first problem, its value, and the way out."""
    first, more = error.errors()[0], error.error_count() - 1
    key = ".".join(str(part) for part in first["loc"]) or "the file"
    message = first["msg"].removeprefix("Value error, ")
    way_out = {
        "missing": f"is missing; add {key.rsplit('.', 1)[-1]} = ...",
        "extra_forbidden": "is not a known key; remove it or correct its spelling (docs/scheduling.md lists all keys)",
        "union_tag_not_found": "has no kind; add kind = 'periodic', 'sporadic', 'poisson', 'closed' or 'trace'",
    }
    told = way_out.get(first["type"], message)
    shown = first["input"] if isinstance(first["input"], str | int | float | bool) else None
    given = f", not {shown!r}" if shown is not None and first["type"] not in way_out else ""
    rest = f" (and {more} more)" if more else ""
    return f"{where}: {key}: {told}{given}{rest}"
