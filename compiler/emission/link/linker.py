"""Linking: bodies of jobs, weights and tables become one image with fixed addresses."""

from collections.abc import Sequence
from dataclasses import replace

from compiler import ir
from compiler.emission.link.job_places import JobPlace, WeightSegment, job_places, weights_only
from compiler.emission.link.job_windows import shared_bytes, windows_of_their_own
from compiler.emission.link.relocation import linked_points, relocated, relocated_program
from compiler.emission.link.tables import job_edges, layer_table, port_table, step_table, tensor_table
from compiler.emission.objects.private_staging import PrivateStaging
from compiler.emission.objects.step_object import JobObject, StepObject
from compiler.emission.preempt.live_bytes import LiveBytes
from compiler.emission.program.address import JobAddresses
from compiler.emission.program.copies import contiguous
from compiler.ir import CompileError
from compiler.plan.layers.step import ModelStep, parameters_of
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.dram_need import check_dram
from compiler.plan.memory.tensor_placement import TensorPlacement
from hw.contract.isa import INSN_BYTES, Insn, Op, Segment
from hw.contract.params import KIB, SocParams
from hw.image import CancelPoint, Image, ImageMeta, JobInfo, LiveRange
from sim.cost import prologue_cycles, set_bounds

_PROLOGUE_LOAD = 4 * KIB  #: bytes of weights one instruction loads beside a body that loads, too
_ANY = 1 << 62  #: bytes, more than there are
_MOST_POINTS = 1 << 16  #: numbers of points in a CANCEL instruction


def link(
    graph: ir.Graph, steps: Sequence[ModelStep], objects: Sequence[StepObject], placement: TensorPlacement,
    budget: Lv2Budget, params: SocParams, longest_load: int,
) -> Image:  # fmt: skip
    """Return the image of ``steps`` with their ``objects``. ``longest_load``: bytes that one instruction of a
    prologue loads at most (0: any), as a pause waits for its end. Raises :class:`CompileError` if DRAM is too small or
    there are too many cancellation points."""
    jobs = [job for one in objects for job in one.jobs]
    count = sum(len(job.points) for job in jobs)
    if count > _MOST_POINTS:
        raise CompileError(
            f"the model has more than {_MOST_POINTS} cancellation points: choose a longer cancel_interval"
        )
    weights = WeightSegment(placement.constants, params, budget.engines)
    places = job_places(jobs, weights, placement, budget, params)
    private = PrivateStaging(placement, budget, params.lv1_word) if budget.placed else None
    code = _Code(params, budget, longest_load, private, few_loads=bool(graph.numbers))
    waits = _waits(jobs) if budget.engines > 1 else [[] for _ in jobs]
    edges = job_edges(graph, steps, objects) if budget.placed else [[] for _ in jobs]
    index = {info: number for number, info in enumerate(placement.parameters)}
    for job, place, wait, after in zip(jobs, places, waits, edges, strict=True):
        code.add(job, place, wait, after, [index[info] for info in parameters_of(steps[job.step].members)])
    set_bounds(code.jobs, code.points, code.bodies, params, code.longest_load, placed=budget.placed)
    sizes = [0] * 8
    sizes[0], sizes[1] = len(code.data), len(weights.data)
    for segment, size in placement.sizes.items():
        sizes[segment] = size
    if private is not None:
        sizes[6], sizes[7] = private.shared_bytes, private.bytes * budget.parts
    else:
        sizes[6] = shared_bytes(placement, budget)
        sizes[7] = sizes[6] + budget.windows * budget.engines
    check_dram(graph.name, sizes, params)
    hosts = [op for step in steps if isinstance(op := step.members[-1].op, ir.Host)]
    meta = ImageMeta(
        model=graph.name,
        params=params.to_dict(),
        segment_sizes=sizes,
        tensors=tensor_table(graph, placement),
        inputs=port_table(graph.inputs),
        outputs=port_table(graph.outputs),
        layers=layer_table(graph, steps, objects, params),
        jobs=code.jobs,
        steps=step_table(steps, code.jobs),
        events=int(budget.engines > 1),
        parts=budget.parts if budget.placed else 0,
        overlaid=not budget.placed,
        weights_only=weights_only(jobs, places, sizes[7]) if windows_of_their_own(jobs, budget) else (0, 0),
        cancel_points=code.points,
        parameters=list(placement.parameters),
        host_sizes=[len(op.model) for op in hosts],
    )
    image = Image(meta, bytes(code.data), bytes(weights.data), [op.model for op in hosts])
    image.validate(graph.name)
    return image


def _waits(jobs: Sequence[JobObject]) -> list[list[tuple[int, int]]]:
    """Return the events that each job waits for. With several engines, a layer starts when all earlier layers have
    ended: every job counts the one event up, and waits until it has reached the number of jobs of earlier layers."""
    waits: list[list[tuple[int, int]]] = []
    before = step = 0
    for count, job in enumerate(jobs):
        if job.step != step:
            before, step = count, job.step
        waits.append([(0, before)] if before else [])
    return waits


class _Code:
    """Code segment, job table and table of cancellation points under construction. ``few_loads``: bodies load little,
    in long pieces: states, whose loads need not wait for many of a prologue."""

    def __init__(
        self, params: SocParams, budget: Lv2Budget, longest_load: int, private: PrivateStaging | None, *,
        few_loads: bool,
    ) -> None:  # fmt: skip
        self.data = bytearray()
        self.jobs: list[JobInfo] = []
        self.points: list[CancelPoint] = []
        self.bodies: list[list[Insn]] = []
        self.longest_load = longest_load  #: bytes of the longest load of a prologue
        self._engines, self._limit, self._params = budget.engines, longest_load, params
        self._private, self._few_loads = private, few_loads
        self._since_load = [params.job_slots] * budget.engines  # jobs since the last whose body loads to LV2
        self._beside = [_ANY] * budget.engines  # bytes of prologues that may be loaded beside that body

    def add(
        self, job: JobObject, place: JobPlace, waits: list[tuple[int, int]], after: list[int], parameters: list[int]
    ) -> None:  # fmt: skip
        """Append a job; ``after`` and ``parameters``: see :class:`hw.image.image.JobInfo`."""
        addresses, first = place.addresses, len(self.points)
        self.bodies.append(relocated_program(job, addresses))
        pc = self._append(relocated(job, addresses, first))
        size, prologue = len(job.window_data), None
        if size and not job.own_loads:  # behind the body: it is shorter than what a fetch reads ahead of an END
            prologue = self._prologue(job, addresses, size, job.ahead[0] if job.ahead else Segment.WEIGHTS)
        self._since_load[job.engine] += 1
        self._beside[job.engine] -= size
        if job.loads and not self._few_loads:
            self._since_load[job.engine] = 0
            self._beside[job.engine] = 2 * size if job.own_loads else _ANY
        points = linked_points(job, addresses, first, len(self.jobs), pc)
        live = self._live(job.starting, addresses)
        self.points += [replace(p, live=self._private.ranges(p.live)) for p in points] if self._private else points
        self.jobs.append(
            JobInfo(
                job.step, job.engine, pc, prologue,
                window_after=place.after if prologue is None else place.after or place.again,
                window=(addresses.window, size) if prologue is not None else (0, 0),
                live=live, waits=waits, signal=0 if self._engines > 1 else None, after=after,
                parameters=parameters,
            )
        )  # fmt: skip

    def _live(self, starting: Sequence[LiveBytes], addresses: JobAddresses) -> list[LiveRange]:
        """Return what LV2 holds before a job, as in its image."""
        ranges = [one.at(addresses) for one in starting]
        return self._private.ranges(ranges) if self._private else ranges

    def _prologue(self, job: JobObject, addresses: JobAddresses, size: int, source: int) -> int:
        """PC of a prologue that loads ``size`` bytes of segment ``source`` piece by piece: a load of a body waits for
        the one in progress. In one piece if no body that loads is near. A first job, whose weights come with its body,
        shares DRAM with about as many bytes of prologues; what comes behind twice as many is loaded in one piece, too,
        if that takes longer than the job: then the fetch of each load delays the next job."""
        near = self._since_load[job.engine] < self._params.job_slots  # prologues run ahead by no more jobs
        if self._beside[job.engine] <= 0 and prologue_cycles(size, self._params) > job.cycles:
            near = False
        piece = _PROLOGUE_LOAD if near else size
        piece = min(piece, self._limit or piece)
        self.longest_load = max(self.longest_load, min(piece, size))
        loads = []
        for at in range(0, size, piece):
            copies = contiguous(addresses.weights + at, addresses.window + at, min(piece, size - at))
            fixed = [{name: addresses.resolve(value) for name, value in fields.items()} for fields in copies]
            loads += [Insn(Op.LD2, f | {"src_seg": source, "dst_seg": Segment.WINDOWS}) for f in fixed]
        return self._append(b"".join(load.encode() for load in loads))

    def _append(self, program: bytes) -> int:
        pc = len(self.data) // INSN_BYTES
        self.data += program + Insn(Op.END).encode()
        return pc
