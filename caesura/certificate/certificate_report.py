"""Shows certificates: a line for each promised stream, what breaks the refused ones, and the terms of one stream."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rich.console import Group
from rich.table import Table

from caesura.certificate.certificate import Certificate
from caesura.views import Column, ColumnTable, line, table_of
from sw.admission import Delays, Response, WorstStorm

_COLUMNS = (
    Column("stream", cut=True), Column("priority", number=True), Column("engines"), Column("own", number=True),
    Column("blocking", number=True), Column("interference"), Column("response", number=True),
    Column("deadline", number=True), Column("slack", number=True), Column("verdict"),
    Column("worst_found", number=True), Column("bound_over_worst", number=True),
)  # fmt: skip


def certificate_table(found: Certificate, storms: Mapping[str, WorstStorm] | None = None) -> ColumnTable:
    """Return a line for each promised stream of ``found``, in cycles. ``storms``: the worst that was found of some."""
    rows = [_row(response, (storms or {}).get(response.stream.name)) for response in found.responses]
    title = f"{found.scenario} on {found.machine}: {'accepted' if found.accepted else 'refused'}; cycles"
    table = ColumnTable(title, _COLUMNS, rows)
    return table if storms else table.without("worst_found", "bound_over_worst")


def _row(response: Response, storm: WorstStorm | None) -> dict[str, Any]:
    stream = response.stream
    parts = [f"{part.urgent.name} {part.count} × {part.each:,}" for part in response.interference if part.cycles]
    bound, worst = response.response, None if storm is None else storm.response
    return {
        "stream": stream.name, "priority": stream.priority, "engines": sorted(stream.engines), "own": response.own,
        "blocking": response.blocking, "interference": parts, "response": bound, "deadline": stream.deadline,
        "slack": response.slack, "verdict": "accepted" if response.accepted else "refused", "worst_found": worst,
        "bound_over_worst": round(bound / worst, 3) if bound and worst else None,
    }  # fmt: skip


def certificate_fields(found: Certificate, storms: Mapping[str, WorstStorm] | None = None) -> dict[str, Any]:
    """Return all of a certificate as plain data; why streams are refused, and what would mend it, included."""
    return {
        "scenario": found.scenario,
        "machine": found.machine,
        "accepted": found.accepted,
        "section": found.section,
        "streams": certificate_table(found, storms).fields(),
        "refused": [
            {
                "stream": response.stream.name,
                "breaks": found.breaking_term(response.stream.name),
                "mended_by": found.remedies(response.stream.name),
            }
            for response in found.refused
        ],
        "assumptions": list(found.assumptions),
    }


def told_refusals(found: Certificate) -> Iterator[str]:
    """Yield lines that say of each refused stream what breaks its promise, and what would mend it."""
    for response in found.refused:
        name = response.stream.name
        yield f"{name} is refused: {found.breaking_term(name)}"
        remedies = found.remedies(name)
        if not remedies:
            yield "  no single change of a deadline or a period mends it: give it other engines"
        for number, remedy in enumerate(remedies):
            yield f"  {'or' if number else 'mended by'} {remedy}"


def certificate_text(
    found: Certificate, storms: Mapping[str, WorstStorm] | None = None, why: str | None = None
) -> Group:
    """Return what people read of a certificate, in tables that 80 columns have room for: the verdicts, what responses
    are made of, and what storms found. ``why``: the stream whose terms are told, too."""
    whole = certificate_table(found, storms)
    verdicts = whole.only("stream", "priority", "response", "deadline", "slack", "verdict")
    parts = replace(whole, title="what responses are made of, cycles")
    tables = [verdicts, parts.only("stream", "engines", "own", "blocking", "interference")]
    if storms:
        worst = replace(whole, title="the worst of storms, cycles")
        tables.append(worst.only("stream", "response", "worst_found", "bound_over_worst"))
    terms = [terms_table(found, why)] if why is not None else []
    lines = [line(text) for text in (*told_refusals(found), *found.assumptions)]
    return Group(*(table.rich() for table in tables), *terms, *lines)


def terms_table(found: Certificate, name: str) -> Table:
    """Return what the response time of stream ``name`` is made of, and what those are made of."""
    return table_of(f"response time of {name}, cycles", ("", ">cycles", ""), _terms(found, found.of(name))).rich()


def _terms(found: Certificate, response: Response) -> Iterator[tuple[str, int | None, str]]:
    stream, delays = response.stream, Delays(found.streams, found.section)
    yield "own", response.own, "from the first work of the host for it to its end, without others"
    yield "  start", stream.start, "a decision, descriptors, the first fetch"
    yield "  computing", stream.computing, "bodies, prologues, steps on the CPU"
    yield "  wait for the CPU", delays.on_cpu(stream), "for steps of other streams"
    yield "blocking", response.blocking, "less urgent streams, until they are off its engines"
    yield "  host", found.section, "what it does when a request is released"
    for one in delays.less_urgent(stream):
        yield f"  {one.name} under way", delays.under_way(one), "it begins, or comes back"
        yield f"  {one.name} halt and dump", one.halt_and_dump, "its longest stretch, and the dump behind it"
    for part in response.interference:
        yield f"interference of {part.urgent.name}", part.cycles, f"{part.count} requests of {part.each:,}"
        yield "  own", delays.own(part.urgent), "of one"
        yield "  switch", delays.switch(stream, part.urgent), "dump, restore, and what starts over"
    yield "jitter", stream.jitter, "from when it is due to its release"
    yield "response", response.response, response.reason or f"request {response.number} of its busy period"
    if response.slack is not None:
        yield "slack", response.slack, f"until its deadline of {stream.deadline:,}"
