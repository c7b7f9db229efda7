"""The reasons for which importers refuse a node, read from their source: what raises ``Unsupported``, and with which
words. A reason belongs to all operators of the file that gives it."""

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType

from compiler.frontend import draft
from compiler.frontend.draft import HANDLERS
from compiler.frontend.problems import Unsupported

_PLACE = "…"  #: stands for what is only known of a node


def refusal_reasons() -> dict[tuple[str, ...], list[str]]:
    """Return the reasons by the names of the operators that they concern, sorted. Those of no names concern any
    operator."""
    modules: dict[ModuleType, set[str]] = {}
    for (_, name), handler in HANDLERS.items():
        module = inspect.getmodule(handler)
        assert module is not None
        modules.setdefault(module, set()).add(name)
    found: dict[tuple[str, ...], list[str]] = {(): list(_reasons_of(draft))}
    found |= {tuple(sorted(names)): list(_reasons_of(module)) for module, names in modules.items()}
    return {names: told for names, told in found.items() if told}


def _reasons_of(module: ModuleType) -> Iterator[str]:
    told = set[str]()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == Unsupported.__name__
        if called and isinstance(node, ast.Call) and node.args and (reason := _text(node.args[0])) not in told:
            told.add(reason)
            if reason.strip(f"{_PLACE} "):
                yield reason


def _text(told: ast.expr) -> str:
    """Return the words of a string, with a place for each value in it."""
    if isinstance(told, ast.Constant):
        return str(told.value)
    if isinstance(told, ast.JoinedStr):
        return "".join(_text(part) for part in told.values)
    if isinstance(told, ast.BinOp):
        return _text(told.left) + _text(told.right)
    return _PLACE
