"""Errors of the front end: every node that cannot be compiled is collected and reported at once."""

from dataclasses import dataclass

from compiler.ir import CompileError


class Unsupported(Exception):
    """Raised by an operator's importer: the accelerator cannot run this node; the message is the reason."""


@dataclass(frozen=True)
class NodeProblem:
    """A node that the accelerator cannot run."""

    name: str
    type: str
    reason: str

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}: {self.reason}"


class UnsupportedModel(CompileError):
    """The model has nodes that the accelerator cannot run; ``nodes`` lists all of them, ``advice`` says what helps."""

    def __init__(self, model: str, nodes: list[NodeProblem], advice: str):
        self.nodes, self.advice = nodes, advice
        lines = "\n".join(f"  {node}" for node in nodes)
        count = f"{len(nodes)} node" + "s" * (len(nodes) > 1)
        super().__init__(f"{model}: the accelerator cannot run {count}:\n{lines}\n{advice}")
