"""Derives flags of the command line from the fields of a dataclass of options.

A field gives a flag its name, type and default, and the first sentence on it in the class's docstring, a paragraph that
begins with ````name````, gives the help. Booleans that are on by default become ``--no-NAME``, so their help begins
with a verb. :class:`Flag` says what else a command line adds, for the few fields that need it.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from typing import Annotated, Any

import typer

_HELP = re.compile(r"^``(\w+)``: (.+?)(?:[.;](?: |$)|$)")


@dataclass(frozen=True)
class Flag:
    """Says what the command line adds to a field: another ``name`` than the field's, the ``least`` number that is
    taken, ``parse`` for values that are written as text, in which ``form``, and ``choices`` that the help lists."""

    name: str = ""
    least: int = 0
    parse: Callable[[str], Any] | None = None
    form: str = ""
    choices: Sequence[str] = ()


@dataclass(frozen=True)
class FieldFlag:
    """Is the flag of a field: ``parameter`` is what Typer takes for it, and ``default`` the field's own value."""

    field: str
    name: str
    parameter: inspect.Parameter
    default: Any
    parse: Callable[[Any], Any]

    def value(self, given: Any) -> Any:
        """Return the value of the field if the command line has ``given`` that, where None is nothing."""
        return self.default if given is None else self.parse(given)


def flags_of(options: type, added: Mapping[str, Flag], without: Collection[str]) -> list[FieldFlag]:
    """Return a flag for every field of the dataclass ``options`` but those ``without`` one; ``added`` is by field."""
    helps = field_helps(options)
    return [
        (_switch if field.type is bool else _valued)(field, helps.get(field.name, ""), added.get(field.name, Flag()))
        for field in fields(options)
        if field.name not in without
    ]


def field_helps(options: type) -> dict[str, str]:
    """Return the help of a field, the first sentence on it in the docstring of ``options``, without its full stop."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(options.__doc__ or ""))
    found = (_HELP.match(" ".join(paragraph.split())) for paragraph in paragraphs)
    return {match[1]: match[2].replace("``", "") for match in found if match}


def _switch(field: Field, told: str, added: Flag) -> FieldFlag:
    """Return the flag of a boolean, which turns it to what it is not by default."""
    spoken = field.name.replace("_", "-")
    name = added.name or (f"--no-{spoken}" if field.default else f"--{spoken}")
    place = _parameter(field, bool, False, name, help=f"do not {told}" if field.default else told)
    return FieldFlag(field.name, name, place, field.default, _turned if field.default else _as_it_is)


def _valued(field: Field, told: str, added: Flag) -> FieldFlag:
    """Return the flag of any other field, which has a value; None stands for a default that the flag does not take."""
    name = added.name or f"--{field.name.replace('_', '-')}"
    told += f": {', '.join(added.choices)}" if added.choices else ""
    told += f", {added.form}" if added.form else ""
    if added.parse:
        place = _parameter(field, str | None, None, name, help=told)
    elif field.type is int:
        number: Any = field.default
        default = number if number >= added.least else None
        place = _parameter(field, int | None, default, name, help=told, min=added.least)
    else:
        place = _parameter(field, field.type, field.default, name, help=told)
    return FieldFlag(field.name, name, place, field.default, added.parse or _as_it_is)


def _parameter(field: Field, kind: Any, default: Any, name: str, **more: Any) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(name, **more)]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _as_it_is(value: Any) -> Any:
    return value


def _turned(value: bool) -> bool:
    return not value
