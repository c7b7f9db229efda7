"""Small images written by hand, for tests that need no compiler."""

from onnx import TensorProto, helper

from hw.contract.assembly import assemble
from hw.contract.isa import INSN_BYTES, Insn
from hw.contract.params import SocParams
from hw.image.image import Image, ImageMeta, JobInfo, LayerInfo, PortInfo, StepInfo, TensorInfo

SIZE = 64  #: bytes that the copying image moves
COPY_CYCLES = 202  #: of its job on ``tiny``, as the RTL and the fast model count them

COPY_BODY = f"""
LD2 src_seg=2 dst_seg=6 len={SIZE} hi={SIZE} hi1=1 hi0=1 signal=0
ST2 src_seg=6 dst_seg=3 len={SIZE} hi={SIZE} hi1=1 hi0=1 wait=0
END
"""


def encode(program: list[Insn]) -> bytes:
    """Instructions as bytes."""
    return b"".join(insn.encode() for insn in program)


def decoded(code: bytes) -> list[Insn]:
    """Bytes as instructions."""
    return [Insn.decode(code[at : at + INSN_BYTES]) for at in range(0, len(code), INSN_BYTES)]


def copy_image(params: SocParams, body: str = COPY_BODY, *, engines: int = 1, name: str = "copy") -> Image:
    """An int8 model that returns its input. With ``engines`` > 1 each job runs on the next engine, after the job
    before it; all but the first only copy again. ``body`` replaces the program."""
    code = encode(assemble(body))
    jobs = [
        JobInfo(
            layer=min(i, 1),
            engine=i % params.engines,
            body_pc=0,
            waits=[(i - 1, 1)] if i else [],
            signal=i if i < engines - 1 else None,
        )
        for i in range(engines)
    ]
    tensors = [
        TensorInfo(name="x", dtype="int8", shape=[1, 8, 8], segment=2, offset=0, scale=0.5, zero_point=3),
        TensorInfo(name="y", dtype="int8", shape=[1, 8, 8], segment=3, offset=0, scale=0.5, zero_point=3),
    ]
    meta = ImageMeta(
        model=name,
        params=params.to_dict(),
        segment_sizes=[len(code), 0, SIZE, SIZE, 0, 0, SIZE, 0],
        tensors=tensors,
        inputs=[PortInfo(name="in", dtype="float32", shape=[1, 8, 8], tensor="x", perm=[0, 2, 1], quantise=True)],
        outputs=[PortInfo(name="out", dtype="float32", shape=[1, 64], tensor="y", perm=[0, 2, 1], quantise=True)],
        layers=[
            LayerInfo(name="first", kind="copy", nodes=["a"], output="y", macs=1000),
            LayerInfo(name="second", kind="copy", nodes=["b"], output="y"),
        ],
        jobs=jobs,
        steps=[StepInfo(kind="jobs", first=0, count=len(jobs))],
        events=engines - 1,
    )
    return Image(meta=meta, code=code, weights=b"")


def negating_image(params: SocParams, *, name: str = "negate", steps: int = 1) -> Image:
    """An int8 model whose input is copied by a job, then negated by the CPU, so many times in steps of their own."""
    image = copy_image(params, name=name)
    for number in range(steps):
        made = TensorInfo(
            **{**vars(image.meta.tensors[1]), "name": f"y{number}", "segment": 4, "offset": number * SIZE}
        )
        read = image.meta.tensors[-1].name if number else image.meta.tensors[1].name
        image.meta.tensors.append(made)
        image.host_models.append(_negation(read, made.name, made.shape))
        step = StepInfo(kind="host", host=number, inputs=[read], outputs=[made.name], reason="test")
        image.meta.steps.append(step)
    image.meta.segment_sizes[4] = steps * SIZE
    image.meta.host_sizes = [len(model) for model in image.host_models]
    image.meta.outputs[0].tensor = image.meta.tensors[-1].name
    return image


def _negation(read: str, made: str, shape: list[int]) -> bytes:
    ports = [helper.make_tensor_value_info(name, TensorProto.INT8, shape) for name in (read, made)]
    graph = helper.make_graph([helper.make_node("Neg", [read], [made])], "g", ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
