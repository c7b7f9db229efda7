"""Finds the machine that a command line names: a preset or a file of parameters, and changes to either."""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hw.contract.params import KIB, MIB, PRESETS, ParamError, SocParams, preset

_NAMES = frozenset(SocParams().to_dict())
_NUMBER = re.compile(r"(?![\d_]{19})(\d+(?:_\d+)*)\s*(KiB|MiB)?", re.ASCII | re.IGNORECASE)
_UNITS = {"kib": KIB, "mib": MIB}


def machine(name: str | None = None, file: Path | None = None, changes: Sequence[str] = ()) -> SocParams | None:
    """Return the parameters of preset ``name`` or of ``file`` (see :func:`read_machine`), with ``changes`` such as
    ``engines=4``.

    None where nothing is named at all; changes alone are to ``tiny``.

    Raises :class:`ParamError` for an unknown name, a value that is no number, or hardware that cannot be built.
    """
    if name is not None and file is not None:
        raise ParamError(f"both a preset ({name}) and a file of parameters ({file}) are given; choose one")
    if name is None and file is None and not changes:
        return None
    return changed(read_machine(file) if file else preset(name or "tiny"), changes)


def changed(base: SocParams, changes: Sequence[str]) -> SocParams:
    """Return ``base`` with changes such as ``lv2_bytes=4MiB``. Raises :class:`ParamError` as :func:`machine` does."""
    return _changed(base, dict(map(_change, changes)))


def machine_of(target: str, changes: Sequence[str]) -> SocParams | None:
    """Return the machine that a preset's name or a TOML file stands for, with changes, or None if ``target`` is
    neither."""
    path = Path(target)
    if path.suffix == ".toml" and path.exists():
        return machine(None, path, changes)
    if target in PRESETS and not path.exists():
        return machine(target, None, changes)
    return None


def read_machine(file: Path) -> SocParams:
    """Return the parameters from a TOML file: fields of :class:`SocParams`, sizes as numbers or as text such as
    ``"4MiB"``.

    ``preset`` names what the others change (default ``tiny``), ``name`` what reports call the machine.

    Raises :class:`ParamError` for what is not TOML, fields that do not exist, and hardware that cannot be built.
    """
    try:
        fields = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParamError(f"{file} is not a TOML file of parameters: {error}") from None
    base, title = fields.pop("preset", "tiny"), fields.pop("name", file.stem)
    for key, value in (("preset", base), ("name", title)):
        if not isinstance(value, str):
            raise ParamError(f"{file}: {key} must be text, not {value!r}")
    try:
        changes = {key: _size(key, value) for key, value in fields.items()}
        return _changed(preset(base), changes).replace(name=title)
    except ParamError as error:
        raise ParamError(f"{file}: {error}") from None


def _change(text: str) -> tuple[str, int]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ParamError(f"--set takes NAME=VALUE, such as engines=4 or lv2_bytes=4MiB, not {text!r}")
    return key.strip(), _size(key.strip(), value.strip())


def _size(key: str, value: Any) -> int:
    """Return a whole number, perhaps with a unit."""
    if key not in _NAMES - {"name"}:
        close = difflib.get_close_matches(key, _NAMES, 1)
        hint = f"did you mean {close[0]}?" if close else "`caesura info tiny` lists them"
        raise ParamError(f"no parameter named {key!r}; {hint}")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ParamError(f"{key} must be a whole number, such as 4, 65536 or 64KiB, not {value!r}")
    return int(match[1]) * _UNITS.get((match[2] or "").lower(), 1)


def _changed(base: SocParams, changes: Mapping[str, int]) -> SocParams:
    if not changes:
        return base
    title = ", ".join([base.name, *(f"{key}={value}" for key, value in changes.items())])
    return base.replace(**changes, name=title)
