"""The ``caesura`` command inside the test's own process."""

import contextlib
import io
import json
import sys
from typing import Any
from unittest import mock

from caesura import cli


def caesura_command(*arguments: object) -> tuple[int, str, str]:
    """Run the command; returns exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["caesura", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
            code: Any = 0
        except SystemExit as stop:
            code = stop.code or 0
    return code, out.getvalue(), err.getvalue()


def run_report(*arguments: object) -> dict[str, Any]:
    """The report of ``caesura run ... --json``, which must succeed."""
    code, out, err = caesura_command("run", *arguments, "--json")
    assert code == 0, err or out
    return json.loads(out)


def wrong_layers(report: dict[str, Any]) -> list[str]:
    """Layers of a report with ``--check`` that break their contract: convolutions (of which fully connected layers
    are a case) and host layers equal onnxruntime bit for bit, others stay within ``compiler.golden``'s tolerance."""
    exact = ("conv", "host")
    layers = report["check"]["layers"]
    return [layer["name"] for layer in layers if not layer["ok"] or (layer["kind"] in exact and layer["different"])]
