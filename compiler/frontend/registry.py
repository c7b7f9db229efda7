"""Which function imports which ONNX operator.

To add an operator, write a function in ``compiler.frontend.ops`` and decorate it::

    @operator("Relu6", domain="com.example")
    def relu6(draft, node):
        value = draft.value(node.input[0])
        ...
        return [pending_or_other_value]         # one value per output of the node

It reads the values of its inputs, returns one value per output, and raises ``Unsupported("reason")`` when the
accelerator cannot run this node. A real-valued result is a subclass of ``Pending`` whose ``emit`` adds operators of the
IR once QuantizeLinear has said how to store it; ``ops/pool.py`` is a short example. Name a new file in
``ops/__init__.py``, and test it with a model of ``tests/support/onnx_models.py``.
"""

from collections.abc import Callable

import onnx

from compiler.frontend.draft import Draft, Value

Handler = Callable[[Draft, onnx.NodeProto], list[Value]]

HANDLERS: dict[tuple[str, str], Handler] = {}


def operator(*op_types: str, domain: str = "") -> Callable[[Handler], Handler]:
    """Register a function as the importer of these operators."""

    def register(handler: Handler) -> Handler:
        for op_type in op_types:
            HANDLERS[domain, op_type] = handler
        return handler

    return register


def attributes(node: onnx.NodeProto) -> dict:
    """Return a node's attributes as Python values; strings decoded."""
    values = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        values[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return values
