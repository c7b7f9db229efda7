"""Finds the tensors of ONNX models, wherever they are."""

from collections.abc import Iterator

import onnx
from google.protobuf.message import Message


def all_tensors(message: Message) -> Iterator[onnx.TensorProto]:
    """Yield all tensors anywhere in a message: of attributes, branches, functions, and the parts of sparse ones."""
    if isinstance(message, onnx.TensorProto):
        yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in [value] if isinstance(value, Message) else value:
                yield from all_tensors(one)
