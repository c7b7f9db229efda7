"""Linking: scheduled jobs, weights and tables become one image."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from compiler import ir
from compiler.backend.layers.layer import ConvLayer, HostLayer, Layer
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.memory.weight_ring import WeightRing
from compiler.backend.preempt.job_body import JobBody
from compiler.backend.program.copies import contiguous
from compiler.backend.program.job import JobProgram
from compiler.backend.program.schedule import TaskSchedule
from compiler.ir import CompileError
from hw.contract.image import CancelPoint, Image, ImageMeta, JobInfo, LayerInfo, PortInfo, StepInfo, TensorInfo
from hw.contract.isa import INSN_BYTES, Insn, Op, Segment
from hw.contract.params import KIB, SocParams
from sim.timing.bound import set_bounds

_DRAM_ALIGN = 64
_PROLOGUE_LOAD = 4 * KIB  #: bytes of weights one instruction loads beside a body that loads, too
_RUN_AHEAD = 8  #: jobs by which prologues may run ahead, at most
_DRIVER_RESERVE = 64 * KIB  #: DRAM left for rings, completions and programs of the driver, per engine


@dataclass
class Scheduled:
    """A job with its program order and its program."""

    job: JobProgram
    schedule: TaskSchedule
    body: JobBody


@dataclass
class Linker:
    """Collects code and weights; :meth:`image` ends the work. ``longest_load``: bytes that one instruction of a
    prologue loads at most (0: any), as a pause waits for its end."""

    params: SocParams
    budget: Lv2Budget
    homes: TensorPlacement
    longest_load: int = 0
    code: bytearray = field(default_factory=bytearray)
    weights: bytearray = field(default_factory=bytearray)
    jobs: list[JobInfo] = field(default_factory=list)
    points: list[CancelPoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._windows = [WeightRing(self.budget.windows) for _ in range(self.budget.engines)]
        self._blobs: dict[bytes, int] = {}
        self._since_load = [_RUN_AHEAD] * self.budget.engines  # jobs since the last whose body loads to LV2
        self._bodies: list[list[Insn]] = []
        self._longest_load = self.longest_load
        self.weights += self.homes.constants

    def add(self, scheduled: Scheduled) -> None:
        """Append a job."""
        job, program = scheduled.job, scheduled.body
        blob_at = self._append_weights(job.blob, job.engine)
        stream_at = self._append_weights(job.stream, job.engine)
        window, after = self._windows[job.engine].claim(len(job.blob))
        window += job.engine * self.budget.windows
        job.place(window, blob_at, stream_at)
        prologue = None
        if job.blob and not job.own_loads:
            alone = self._since_load[job.engine] >= _RUN_AHEAD
            piece = len(job.blob) if alone else _PROLOGUE_LOAD
            piece = min(piece, self.longest_load or piece)
            prologue = self._append_code(_prologue(blob_at, window, len(job.blob), piece))
            self._longest_load = max(self._longest_load, min(piece, len(job.blob)))
        self._since_load[job.engine] += 1
        if any(task.op is Op.LD2 for task in job.tasks):
            self._since_load[job.engine] = 0
        live, first = program.starting, len(self.points)
        self._bodies.append(program.code(first))
        body = self._append_code(self._bodies[-1])
        self.points += program.points(first, len(self.jobs), body)
        held = (window, len(job.blob)) if prologue is not None else (0, 0)
        self.jobs.append(JobInfo(job.layer, job.engine, body, prologue, after, window=held, live=live))

    def _append_weights(self, data: bytes | bytearray, engine: int) -> int:
        """Address of ``data`` in the weight segment; engines that work on different pixels share it.

        What is long begins in a DRAM bank of its engine: engines load their parts of a layer side by side, and where
        they meet in a bank, they close each other's rows with every burst. An engine starts up to a few rows after
        the one before it, as the host queues for one after the other; so its banks lie behind, half as far as they
        could.
        """
        key = hashlib.sha256(data).digest()
        if key not in self._blobs:
            banks = self.params.dram_banks * self.params.dram_row_bytes
            if len(data) >= banks and self.budget.engines > 1:
                behind = engine * banks // (2 * self.budget.engines) // _DRAM_ALIGN * _DRAM_ALIGN
                self.weights += bytes((-behind - len(self.weights)) % banks)
            self._blobs[key] = len(self.weights)
            self.weights += data + bytes(-len(data) % _DRAM_ALIGN)
        return self._blobs[key]

    def _guard_next_inference(self) -> None:
        """The next inference may be queued behind this one: its first prologues wait for the last users here."""
        for engine, ring in enumerate(self._windows):
            own = [job for job in self.jobs if job.engine == engine]
            for number, job in enumerate(own):
                if job.prologue_pc is not None and job.window_after == 0:
                    job.window_after = ring.again(number)

    def _order_layers(self) -> None:
        """With several engines, a layer starts when all earlier layers have ended: every job counts the one event up,
        and waits until it has reached the number of jobs of earlier layers."""
        before, layer = 0, 0
        for count, job in enumerate(self.jobs):
            if job.layer != layer:
                before, layer = count, job.layer
            job.waits = [(0, before)] if before else []
            job.signal = 0

    def _append_code(self, program: list[Insn]) -> int:
        pc = len(self.code) // INSN_BYTES
        for insn in (*program, Insn(Op.END)):
            self.code += insn.encode()
        return pc

    def image(self, graph: ir.Graph, layers: list[Layer], cycles: list[tuple[int, int]]) -> Image:
        """The image. ``cycles``: estimated (load, compute) of each layer."""
        if self.budget.engines > 1:
            self._order_layers()
        self._guard_next_inference()
        set_bounds(self.jobs, self.points, self._bodies, self.params, self._longest_load)
        sizes = [0] * 8
        sizes[0], sizes[1], sizes[7] = len(self.code), len(self.weights), self.budget.windows * self.budget.engines
        for segment, size in self.homes.sizes.items():
            sizes[segment] = size
        sizes[6] = max(sizes[6], self.budget.staging_end)
        need = sum(sizes[:6]) + _DRIVER_RESERVE * self.params.engines
        if need > self.params.dram_bytes:
            raise CompileError(
                f"model {graph.name!r} needs {need} bytes of DRAM (code {sizes[0]}, weights {sizes[1]}, tensors "
                f"{sum(sizes[2:6])}), preset {self.params.name!r} has {self.params.dram_bytes}: choose a preset with a "
                "larger dram_bytes"
            )
        hosts = [layer.op for layer in layers if isinstance(layer.op, ir.Host)]
        meta = ImageMeta(
            model=graph.name,
            params=self.params.to_dict(),
            segment_sizes=sizes,
            tensors=self._tensors(),
            inputs=[_port(port) for port in graph.inputs],
            outputs=[_port(port) for port in graph.outputs],
            layers=[self._layer(graph, layer, *pair) for layer, pair in zip(layers, cycles, strict=True)],
            jobs=self.jobs,
            steps=_steps(layers, self.jobs),
            events=int(self.budget.engines > 1),
            cancel_points=self.points,
            host_sizes=[len(op.model) for op in hosts],
        )
        image = Image(meta, bytes(self.code), bytes(self.weights), [op.model for op in hosts])
        image.validate(graph.name)
        return image

    def _tensors(self) -> list[TensorInfo]:
        infos = []
        for name, tensor in self.homes.tensors.items():
            home = self.homes.by_tensor[name]
            if name in self.homes.exports:
                segment, offset = int(Segment.SHARED), self.homes.exports[name]
            elif home.segment in (Segment.INPUTS, Segment.OUTPUTS, Segment.SHARED) and name not in self.homes.inside:
                segment, offset = home.segment, home.offset
            else:
                continue
            dtype: Any = tensor.dtype
            scale, zero_point = float(tensor.scale), int(tensor.zero_point)
            infos.append(TensorInfo(name, dtype, list(tensor.shape), segment, offset, scale, zero_point))
        return infos

    def _layer(self, graph: ir.Graph, layer: Layer, load: int, compute: int) -> LayerInfo:
        return LayerInfo(
            name=layer.name,
            kind=layer.kind,
            nodes=layer.nodes,
            output=graph.tensors[layer.output].onnx_name or layer.output if layer.output in graph.tensors else "",
            macs=macs(graph, layer),
            input_bytes=sum(graph.tensors[name].size for name in layer.inputs),
            weight_bytes=int(layer.op.weights.size) if isinstance(layer.op, ir.Conv) else 0,
            output_bytes=graph.tensors[layer.output].size if layer.output in graph.tensors else 0,
            estimated_load=load,
            estimated_compute=compute,
        )


def _prologue(source: int, target: int, size: int, piece: int) -> list[Insn]:
    """Loads of ``size`` bytes of weights, ``piece`` by piece: a load of a body waits for the one in progress."""
    loads = []
    for at in range(0, size, piece):
        for fields in contiguous(source + at, target + at, min(piece, size - at)):
            loads.append(Insn(Op.LD2, fields | {"src_seg": Segment.WEIGHTS, "dst_seg": Segment.WINDOWS}))
    return loads


def macs(graph: ir.Graph, layer: Layer) -> int:
    """Multiply-accumulates of a convolution as the model states it; 0 for everything else."""
    if not isinstance(layer, ConvLayer) or not isinstance(layer.op, ir.Conv):
        return 0
    n, h, w, _ = graph.tensors[layer.output].nhwc
    return n * h * w * int(layer.op.weights.size)


def _port(port: ir.Port) -> PortInfo:
    return PortInfo(port.name, port.dtype, list(port.shape), port.tensor, list(port.perm), port.quantise)


def _steps(layers: list[Layer], jobs: list[JobInfo]) -> list[StepInfo]:
    """Runs of jobs between the operators that run on the CPU."""
    steps: list[StepInfo] = []
    host, first = 0, 0
    for number, layer in enumerate(layers):
        if not isinstance(layer, HostLayer) or not isinstance(layer.op, ir.Host):
            continue
        before = sum(job.layer < number for job in jobs)
        if before > first:
            steps.append(StepInfo("jobs", first, before - first))
        op = layer.op
        steps.append(StepInfo("host", host=host, inputs=list(op.inputs), outputs=list(op.outputs), reason=op.reason))
        host, first = host + 1, before
    if len(jobs) > first:
        steps.append(StepInfo("jobs", first, len(jobs) - first))
    return steps
