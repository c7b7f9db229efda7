"""Compile a model, run it on the fast model, and compare its outputs with those of onnxruntime."""

from pathlib import Path

import numpy as np
import onnx

import caesura
from compiler import golden
from compiler.compile import Compiled, compile_with_report
from compiler.plan.options import Options
from sim.host import session
from sim.model.bus import ModelBus
from tests.support.golden_check import random_inputs


def equals_onnxruntime(
    model: onnx.ModelProto | Path, preset: str, *, least: float = 1.0, seed: int = 0, as_written: bool = False
) -> Compiled:
    """Assert that nothing runs on the CPU, and that a share of at least ``least`` of the outputs' elements is equal,
    with ``as_written`` to those of the nodes as they are written."""
    params = caesura.PRESETS[preset]
    compiled = compile_with_report(model, params, options=Options(order="source"), jobs=1, cache=False)
    assert "host" not in {op.kind for op in compiled.graph.ops}
    inputs = random_inputs(compiled.graph, seed)
    found, _ = caesura.Device(ModelBus(params)).load(compiled.image).run(inputs)
    if as_written:
        run = session(model if isinstance(model, onnx.ModelProto) else onnx.load(model), as_written=True)
        names = [value.name for value in run.get_outputs()]
        outputs = dict(zip(names, run.run(names, inputs), strict=True))
    else:
        outputs = golden.golden_outputs(model, inputs)
    for name, wanted in outputs.items():
        assert found[name].shape == wanted.shape
        equal = np.count_nonzero(found[name] == wanted) / wanted.size
        assert equal >= least, f"{preset}, {name}: {equal:.2%} of the elements are equal"
    return compiled
