"""Names that steer a terminal, are markup, or become links, and a model that is made of them."""

from pathlib import Path

import onnx

#: Of files: they have no slash.
FILE = "[bold]f[red]$$\\href{javascript:alert(1)}{f}$$:smile:\x1b]0;owned\x07\x1b[2J\r\x9b2J\u202e\u2066<b>=1+1"
#: Of all else. A closing tag that nothing opened is an error in rich's markup, a link in it one that a terminal opens.
NAME = (
    FILE
    + "[/nope][link=https://example.org/x]l[/link]\n<script src='https://example.org/x.js'></script>\\(x\\)\\[y\\]\x08"
)
STEERING = ("\x1b]", "\x1b[2J", "\x07", "\r", "\x9b", "\u202e", "\u2066", "\x08")  #: what must never be printed
SHOWN = "[bold]f[red]$$\\href{javascript:alert(1)}{f}$$:smile:\\x1b]0;owned\\x07\\x1b[2J\\r\\x9b2J\\u202e\\u2066"


def hostile_model(path: Path, model: Path) -> Path:
    """A copy of ``model`` in which everything that has a name has a hostile one."""
    proto = onnx.load(model)
    graph = proto.graph

    def renamed(name: str) -> str:
        return f"{NAME}{name}" if name else ""

    graph.name = NAME
    for node in graph.node:
        node.name = renamed(node.name)
        node.input[:] = map(renamed, node.input)
        node.output[:] = map(renamed, node.output)
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = renamed(value.name)
    onnx.save(proto, path)
    return path
