"""Operators that the accelerator has in no form, refused amid a network with words of their own. At its ends the CPU
takes them over, see :mod:`compiler.frontend.float_ends`."""

import onnx

from compiler.frontend.draft import Draft, Value, operator
from compiler.frontend.problems import Unsupported


@operator("ArgMax", "ArgMin")
def index_of_extreme(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Refused: the accelerator computes values, and no indices."""
    raise Unsupported("its indices are no 8-bit tensor; the CPU finds them behind the last one, without being allowed")


@operator("LRN")
def local_response(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Refused: nothing on the accelerator divides by what neighbouring channels hold."""
    raise Unsupported(
        "it divides by a power of a sum over neighbouring channels, which the accelerator cannot; train the network "
        "with BatchNormalization in its place, or without it"
    )
