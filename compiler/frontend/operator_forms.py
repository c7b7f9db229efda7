"""What the front end takes of ONNX: a row for each kind of operator, by the functions that import it.

Names of operators, the contract of results and the reasons of refusals are not written here: names are what
:data:`compiler.frontend.draft.HANDLERS` registers for those functions, the contract is the rule of what the operator
becomes (:class:`compiler.ir.GoldenRule`), and reasons are those that the code gives. ``docs/operators.md`` is generated
from all of them.
"""

from dataclasses import dataclass

from compiler import ir
from compiler.frontend.draft import HANDLERS, Handler
from compiler.frontend.ops import (
    affine,
    append,
    conv,
    eltwise,
    expand,
    gathers,
    host,
    instance_norm,
    masks,
    matmul,
    move,
    pads,
    pointwise,
    pool,
    quantise,
    recurrent,
    reduce,
    resize,
    rows,
    slices,
    slopes,
    sums,
    transposed,
    unsupported,
)
from compiler.ir.graph import EIGHT_BIT

_STORED = ", ".join(EIGHT_BIT)


@dataclass(frozen=True)
class OperatorForms:
    """Says which ``forms`` the operators that ``handlers`` import may have, and what they ``become``: in words, and as
    operators of the IR, ``made``. ``only``: of the operators of those handlers, if not
    all; ``types``: of what they read."""

    handlers: tuple[Handler, ...]
    forms: str
    becomes: str
    made: tuple[type[ir.Operation], ...]
    only: tuple[str, ...] = ()
    types: str = _STORED

    @property
    def operators(self) -> list[str]:
        """Return the names in ONNX of the operators, in order."""
        named = {name for (_, name), handler in HANDLERS.items() if handler in self.handlers}
        return sorted(named.intersection(self.only) if self.only else named)

    @property
    def contract(self) -> str:
        """Return how near results are to onnxruntime's."""
        rules = dict.fromkeys(_CONTRACTS[kind.rule] for kind in self.made)
        return "; or ".join(rules) or ("as onnxruntime computes it" if self.becomes else "")


_CONTRACTS = {
    ir.GoldenRule.EXACT: "equal",
    ir.GoldenRule.INTEGER: "equal",
    ir.GoldenRule.NEAR: "1 LSB",
    ir.GoldenRule.WRITTEN: "1 LSB from the nodes as written, in float32",
}
_MOVED = (ir.Permute, ir.Reshape)
_WEIGHTS = f"{_STORED}; weights too, per tensor or channel; bias int32 or float"

OPERATOR_FORMS = (
    OperatorForms(
        (quantise.quantize_linear, quantise.dequantize_linear), "per tensor; constants per channel too",
        "where tensors are stored; a table where values are stored again in other steps", (ir.Table,),
        types=f"{_STORED}; constants int4, uint4 and int32 too",
    ),
    OperatorForms(
        (conv.conv, conv.qlinear_conv, conv.conv_integer),
        "one and two dimensions, any groups, strides, pads, dilations", "MAC arrays", (ir.Conv,), types=_WEIGHTS,
    ),
    OperatorForms(
        (transposed.conv_transpose,),
        "one and two dimensions, any groups, strides, pads, dilations, output_padding; weights quantised per tensor or "
        "along axis 1",
        "a convolution for each place in a stride, or for each row of them; their results are stored where they belong",
        (ir.Conv,), types=_WEIGHTS,
    ),
    OperatorForms(
        (matmul.gemm, matmul.matmul, matmul.matmul_integer, matmul.qgemm, matmul.qlinear_matmul),
        "by a constant, or of two computed matrices", "MAC arrays", (ir.Conv, ir.Product), types=_WEIGHTS,
    ),
    OperatorForms(
        (pool.pool, pool.global_pool, pool.qlinear_pool),
        "one and two dimensions, any strides, pads and dilations, ceil_mode, count_include_pad; no indices",
        "maxima on the vector unit, averages as depthwise convolutions", (ir.Pool,),
    ),
    OperatorForms(
        (reduce.reduce,), "any axes; sums and means of at most 16,384 elements in a window of at most 255 by 255",
        "pools; a minimum is a maximum of turned bytes", (ir.Pool,),
    ),
    OperatorForms(
        (eltwise.binary, eltwise.qlinear_binary),
        "two tensors, or one and a constant; the second may be broadcast over pixels",
        "vector unit, or part of the convolution in front", (ir.Eltwise,),
        only=("Add", "Sub", "Mul", "QLinearAdd", "QLinearMul"),
    ),
    OperatorForms(
        (affine.batch_normalisation,), "constant scale, bias, mean, variance",
        "part of the convolution or product in front, or a depthwise convolution", (ir.Conv,),
    ),
    OperatorForms(
        (eltwise.binary,), "a tensor and a constant in float for each channel", "the same", (ir.Conv,),
        only=("Add", "Sub", "Mul"),
    ),
    OperatorForms(
        (eltwise.binary,), "any number of tensors", "vector unit, two at a time", (ir.Eltwise,), only=("Min", "Max")
    ),
    OperatorForms(
        (sums.sum_,),
        "up to 32 tensors of one shape, whose steps are not much coarser than the result's; of two as Add does",
        "a depthwise convolution over the tensors one above the other; half-way cases, in which both may differ by "
        "one, are those within 1/64 of a step", (ir.Blend, ir.Table, ir.Concat),
    ),
    OperatorForms(
        (pointwise.extended, pointwise.clamp, quantise.qlinear_unary),
        "of one tensor and single constants, also several in a row, with what chooses or moves elements between them",
        "one table; Relu and Clip behind other operators cost nothing", (ir.Table,),
    ),
    OperatorForms(
        (slopes.prelu,), "one slope, or one for each channel of an image",
        "a table; or two tables, a depthwise convolution and a sum", (ir.Table, ir.Slope),
    ),
    OperatorForms(
        (move.reshape, move.transpose, move.identity), "constant shapes",
        "nothing, or one copy; of a shuffle of channels what no convolution can read as it lies", _MOVED,
    ),
    OperatorForms((move.cast,), "of an accumulator to float", "nothing", _MOVED, types="int32"),
    OperatorForms((move.between_depth_and_space,), "both modes", "one copy", _MOVED),
    OperatorForms(
        (slices.split,),
        "every operator set: sizes as attribute or input, equal parts, a shorter last one; any axis",
        "parts that are read in place, or copies", (ir.Slice,),
    ),
    OperatorForms(
        (slices.slice_,), "any axes, steps forwards", "the same; with steps copies", (ir.Slice,)
    ),
    OperatorForms(
        (gathers.gather, gathers.gather_nd), "constant indices; of GatherND without batch_dims",
        "the same; several indices in few stretches are slices and a concatenation", (ir.Slice, ir.Concat),
    ),
    OperatorForms(
        (gathers.gather,),
        "a constant table with one scale, by one index that is an input of the model, from 0 on; four such inputs, or "
        "sizes of rows",
        "one copy, from where a parameter of the job says", (ir.Lookup,), types=f"{_STORED}; indices int32, int64",
    ),
    OperatorForms(
        (gathers.gather, gathers.gather_nd, gathers.gather_elements),
        "a constant table with one scale; indices that are an input of the model or that the CPU computes of one: "
        "negative ones count from the end, and others out of range end the inference with an error",
        "a step of the CPU, without being allowed, whose result goes on in 8 bits", (),
        types=f"{_STORED}; indices int32, int64",
    ),
    OperatorForms((expand.expand, expand.tile), "constants", "copies", (ir.Repeat,)),
    OperatorForms(
        (masks.where,), "a constant condition, one tensor and one value", "one product with a mask", (ir.Eltwise,)
    ),
    OperatorForms(
        (resize.resize,),
        "nearest pixels, any coordinates and rounding, by constant scales or sizes; one pixel to an image in mode "
        "linear too",
        "one copy by whole factors; elsewhere also slices", (ir.Repeat, ir.Slice),
    ),
    OperatorForms(
        (resize.resize,),
        "linear, whole factors, corners not aligned; half-way cases, in which both may differ by one, are rare by "
        "powers of two",
        "depthwise convolutions: one for each row in a factor, of an image that has its channels once for each column; "
        "from 64 channels on one for each place",
        (ir.Blend, ir.Concat, ir.Slice, ir.Repeat),
    ),
    OperatorForms(
        (append.concat,),
        "one row behind a float input with a dynamic dimension, stored like that, where the result is an output: keys "
        "and values of the past",
        "a state in device memory, loaded ahead of time, to which the row is added: [language models](language.md)",
        (ir.Append, ir.StateLoad),
    ),
    OperatorForms(
        (append.concat, quantise.qlinear_concat), "any axis; constants too",
        "parts that are written in place, or copies; a table in front of parts in other steps", (ir.Concat, ir.Table),
    ),
    OperatorForms(
        (pads.pad,), "constant around an image",
        "taken over by the convolution or pool behind it, or a copy", (ir.Pad,),
    ),
    OperatorForms(
        (pads.pad,), "any axes, negative pads, modes edge, reflect, wrap",
        "slices and a concatenation", (ir.Slice, ir.Concat),
    ),
    OperatorForms(
        (rows.softmax, rows.qlinear_softmax), "last axis, amid a network",
        "passes over rows; elsewhere a step of the CPU", (ir.Softmax,),
    ),
    OperatorForms((host.softmax,), "any axis", "a step of the CPU", ()),
    OperatorForms(
        (rows.layer_normalization,), "last axis; also written out in single operators", "passes over rows",
        (ir.LayerNorm,),
    ),
    OperatorForms(
        (rows.rms_normalization,), "last axis; also written out in single operators", "passes over rows",
        (ir.RmsNorm,),
    ),
    OperatorForms(
        (instance_norm.instance_normalization,),
        "one scale and one bias for all channels, of up to 4,080 pixels; caesura quantise writes others, and "
        "GroupNormalization, in this form with Mul and Add", "passes over rows", (ir.LayerNorm,),
    ),
    OperatorForms((unsupported.index_of_extreme,), "behind the last 8-bit tensor", "a step of the CPU", ()),
    OperatorForms(
        (matmul.attention, matmul.rotary_embedding, recurrent.recurrent, unsupported.local_response),
        "none: refused, with a way out", "", (), types="",
    ),
)  # fmt: skip
