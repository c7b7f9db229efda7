"""Tells of requests in the tables that notebooks show."""

from collections.abc import Iterable
from typing import Any

from hw.contract.html_table import html_table


def request_table(request: Any) -> str:
    """Return a table of what a ``Request`` is and how it went, in cycles, a row for each."""
    waited, took = _less(request.started, request.arrival), _less(request.ended, request.started)
    rows = [
        ("model", request.model.name), ("tenant", request.tenant), ("state", request.state.name.lower()),
        ("error", request.error), ("priority", request.priority), ("arrival", request.arrival),
        ("started", request.started), ("ended", request.ended), ("waited", waited), ("took", took),
        ("on the CPU", request.host), ("preempted", request.preempted), ("started over", request.repeated),
        ("done", f"{request.progress:.0%}"),
    ]  # fmt: skip
    return html_table(request, ("", ""), [row for row in rows if row[1] is not None])


def requests_table(caption: object, requests: Iterable[Any]) -> str:
    """Return a table of several, a row for each, as the ``caption`` has them."""
    heads = ("request", "model", "state", "priority", "arrival", "started", "ended", "preempted", "error")
    rows = [
        (
            one.number, one.model.name, one.state.name.lower(), one.priority, one.arrival, one.started, one.ended,
            one.preempted, None if one.error is None else type(one.error).__name__,
        )
        for one in requests
    ]  # fmt: skip
    return html_table(caption, heads, rows)


def _less(end: int | None, begin: int | None) -> int | None:
    return None if end is None or begin is None else end - begin
