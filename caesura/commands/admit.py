"""Defines ``caesura admit``, which answers for the deadlines of a scenario before it runs."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.api import UsageError
from caesura.commands.options import Json
from caesura.views import Progress, json_text, tell, write


def admit(
    file: Annotated[Path, typer.Argument(help="a scenario file (.toml); docs/certificate.md says what it promises")],
    why: Annotated[str | None, typer.Option(help="show what the response time of this stream is made of")] = None,
    storm: Annotated[
        int | None, typer.Option(min=1, help="search so many runs for the worst phases of each stream, and compare")
    ] = None,
    as_json: Json = False,
) -> None:
    """Admit a scenario if every stream with a promise keeps its deadline in the worst case; exit code 1 if refused."""
    from caesura.certificate.certificate import admit as found_for  # loaded where they are used
    from caesura.certificate.certificate_report import certificate_fields, certificate_text

    with Progress() as progress:
        found = found_for(file, progress=progress)
        promised = [response.stream.name for response in found.responses]
        if why is not None and why not in promised:
            raise UsageError(f"--why {why}: is no stream with a promise; there are {', '.join(promised)}")
        progress.task("searching for the worst phases")
        bounded = [one.stream.name for one in found.responses if one.response is not None]
        storms = {name: found.storm(name, storm) for name in bounded} if storm else {}
    if as_json:
        write(json_text(certificate_fields(found, storms)))
    else:
        tell(certificate_text(found, storms, why))
    if not found.accepted:
        raise typer.Exit(1)
