"""Float ONNX models to 8-bit QDQ models, by onnxruntime's quantiser: static, weights per output channel."""

import contextlib
import logging
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
import onnx.version_converter
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from compiler.quantise.fitting_masks import fitting_masks, stored_alike
from compiler.quantise.int4_weights import int4_overrides, with_int4
from compiler.quantise.joined_nodes import joined
from compiler.quantise.plain_attention import plain_attention
from compiler.quantise.plain_norms import plain_norms
from compiler.quantise.plain_pools import plain_pools
from compiler.quantise.state_scales import one_scale_each
from compiler.quantise.step_feeds import Feed
from compiler.quantise.stored_tables import stored_tables
from compiler.quantise.unrolled_cells import unrolled
from compiler.quantise.written_rms import rms_nodes
from compiler.quantise.written_rotation import signed_tables

_OLDEST = 13  #: operator set


def prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a float model with shapes inferred, batch normalisations folded into the convolutions before them, and
    recurrent nodes as single cells where :func:`compiler.quantise.unrolled_cells.why_rolled` has nothing against it,
    normalisations of channels without their scales and biases, which follow, a mean over an image that is moved as a
    pool, and Attention and RotaryEmbedding in single operators, see
    :mod:`compiler.quantise.plain_attention`. Equal nodes of a step model are one, see
    :mod:`compiler.quantise.joined_nodes`, and rotations have their signs in tables, see
    :mod:`compiler.quantise.written_rotation`. An older model is converted to the first operator set whose
    QuantizeLinear has an axis."""
    version = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), _OLDEST)
    if version < _OLDEST:
        model = onnx.version_converter.convert_version(model, _OLDEST)
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "prepared.onnx"
        onnx.save(plain_norms(model), source)  # onnxruntime puts a function in the place of group normalisations
        quant_pre_process(source, target, skip_symbolic_shape=True)
        made = plain_norms(plain_pools(unrolled(onnx.load(target))))
        return signed_tables(joined(plain_attention(made)))


def quantise(
    model: onnx.ModelProto | Path, feeds: Iterable[Feed], path: Path, *, activations: str = "int8",
    per_channel: bool = True, int4: bool = False,
) -> None:  # fmt: skip
    """Write the QDQ form of a float model whose shapes are known.

    Activations are ``int8`` or ``uint8`` per tensor with a zero point; their ranges are the smallest and largest values
    seen on ``feeds``, which are inputs by name. Weights are int8, symmetric, with a scale per output channel or one.
    With ``int4``, those of products of matrices are int4. Constant masks in front of softmax become such as 8 bits
    hold, see :mod:`compiler.quantise.fitting_masks`. States have one scale each, see
    :mod:`compiler.quantise.state_scales`; ``feeds`` of a model that has some are
    :class:`compiler.quantise.step_feeds.StepFeeds`.
    """
    feeds = list(feeds) if isinstance(feeds, Iterator) else feeds
    given = model if isinstance(model, onnx.ModelProto) else onnx.load(str(model))
    given = with_int4(given) if int4 else given
    masked = fitting_masks(given, feeds)
    with _quiet():
        quantize_static(
            model if masked is given and not int4 else masked,
            path,
            _Calibration(feeds),
            nodes_to_exclude=rms_nodes(masked),
            quant_format=QuantFormat.QDQ,
            per_channel=per_channel,
            activation_type={"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[activations],
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod.MinMax,
            extra_options={
                "ActivationSymmetric": False,
                "WeightSymmetric": True,
                "TensorQuantOverrides": int4_overrides(masked, per_channel=per_channel) if int4 else {},
            },
        )
    made = onnx.load(str(path))
    if masked is not given:
        stored_alike(made)
    stored_tables(made)
    one_scale_each(made)
    onnx.save(made, str(path))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings: onnxruntime's quantiser logs one for each constant that has no channels to quantise by."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class _Calibration(CalibrationDataReader):
    """Feeds inputs to onnxruntime's calibration one at a time."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)
