"""Writes scenarios of two digits networks to files, for the command line."""

import json
import tomllib

from tests.caesura.certificate.two_digits import content


def toml(value):
    """The text of ``value``, with tables in line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def scenario_file(folder, **changes):
    """The path of a file of ``content``."""
    file = folder / "scenario.toml"
    file.write_text("\n".join(f"{key} = {toml(value)}" for key, value in content(**changes).items()))
    assert tomllib.loads(file.read_text()) == content(**changes)
    return file
