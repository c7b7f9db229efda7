"""Tells ONNX models apart, and finds their tensors, wherever they are."""

import hashlib
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


class ModelsKey:
    """Stands for serialised models as a cache key that compares digests instead of megabytes."""

    def __init__(self, *models: bytes) -> None:
        self.models = models
        self._digests = tuple(hashlib.sha256(model).digest() for model in models)

    def __hash__(self) -> int:
        return hash(self._digests)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelsKey) and other._digests == self._digests
