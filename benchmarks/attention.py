"""``caesura bench attention``: how near to the MAC peak attention and encoders of transformers run.

Utilisation counts from the start of the first prologue or body to the end of the last body, all engines together.
Outputs are compared with the NumPy reference, every operator of which is held against onnxruntime on its own inputs:
in a whole model onnxruntime computes softmax otherwise than its nodes say.
"""

from functools import partial

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.utilisation import run_detail


def figures() -> list[Figure]:
    """Return all rows, in the order of the report. ViT-tiny must run, with nothing on the CPU but the cutting of
    patches."""
    return [
        Figure("attention_128", Target(65, 85), partial(_of_peak, name="attention_12x64_128")),
        Figure("attention_384", Target(65, 85), partial(_of_peak, name="attention_12x64_384")),
        Figure("bert_base_layer_128", Target(80, 90), partial(_of_peak, name="bert_base_1x128")),
        Figure("vit_tiny", Target(0, 75), partial(_of_peak, name="vit_tiny_patches")),
    ]


def _of_peak(lab: Lab, name: str) -> Measured:
    run = lab.run(name)
    host = [step.reason for step in run.image.meta.steps if step.kind == "host"]
    return Measured(run.utilisation, run.correct and not host, {"on_the_cpu": host, **run_detail(run)})
