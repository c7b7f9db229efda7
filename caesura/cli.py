"""Runs the command line: ``caesura run | quantise | compile | info | disasm | verilog | profile | retime | ...``.

Exit codes: 0 success, 1 a check that failed, 2 an error of the user's making or of the device.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from caesura.commands.admit import admit
from caesura.commands.bench import bench
from caesura.commands.compile import compile
from caesura.commands.demo import demo
from caesura.commands.diff import diff
from caesura.commands.export import disasm, export
from caesura.commands.fpga import fpga
from caesura.commands.info import info
from caesura.commands.kernels import kernels
from caesura.commands.memory import memory
from caesura.commands.profile import profile
from caesura.commands.quantise import quantise
from caesura.commands.retime import retime
from caesura.commands.run import run
from caesura.commands.scenario import scenario
from caesura.commands.serve import serve
from caesura.commands.sweep import sweep
from caesura.commands.verilog import verilog
from caesura.commands.whatif import whatif
from caesura.version import __version__
from caesura.views import complain, say
from compiler import OpenDimension, UnsupportedModel
from sim import visible


class _Commands(TyperGroup):
    """Holds commands whose errors of usage show arguments as text."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Make the context as typer does."""
        with _visible_errors():
            return super().make_context(*args, **more)

    def invoke(self, *args: Any) -> Any:
        """Invoke the command as typer does."""
        with _visible_errors():
            return super().invoke(*args)


@contextlib.contextmanager
def _visible_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        message = getattr(error, "message", None)
        if hasattr(error, "format_message") and isinstance(message, str):  # one of typer's own
            cast(Any, error).message = visible(message)
        raise


app = typer.Typer(
    name="caesura",
    cls=_Commands,
    help="An open NPU: compile ONNX models and run them on its RTL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _told_version(wanted: bool) -> None:
    if wanted:
        say(f"caesura {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_told_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """An open NPU: compile ONNX models and run them on its RTL."""


for command in (
    quantise, run, compile, info, disasm, sweep, export, verilog, fpga, profile, retime, diff, memory, bench, scenario,
    serve, admit,
):  # fmt: skip
    app.command()(command)


# Options of the example itself, and of a run, pass through.
for command in (demo, whatif):
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(command)
app.add_typer(kernels, name="kernels")


def _told(error: Exception) -> str:
    if isinstance(error, UnsupportedModel):
        return error.told("--fallback")  # commands without the option say themselves what they have instead
    if isinstance(error, OpenDimension):
        return error.told(f"--dim {error.label}=N,")
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def main() -> None:
    """Run the ``caesura`` command."""
    try:
        app()
    except Exception as error:
        from caesura.exports import user_errors  # loads all that can raise one

        if not isinstance(error, user_errors()):
            raise
        complain(f"error: {_told(error)}")
        sys.exit(2)
