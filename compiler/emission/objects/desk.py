"""All steps of a model as objects, each question answered once, in as many processes as there are."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from compiler.emission.kernels.registry import KernelContext
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.objects.question import Question
from compiler.emission.objects.step_object import RefusedRegion, StepObject, step_jobs, step_object
from compiler.emission.objects.workers import Workers, cpus
from compiler.emission.preempt.points import PointLimits
from compiler.ir import CompileError, Tensor
from compiler.plan.layers.layer import ConvLayer, LoadLayer
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.tensor_placement import TensorPlacement
from compiler.plan.plan import without_order
from compiler.plan.plan_error import OtherJobsError, PlanError
from hw.contract.params import SocParams
from sim.cost import moved

#: Cycles of layers that take longer to compile than other processes take to start: about two seconds.
_MANY_CYCLES = 2_000_000
_MOST_BYTES = 256 << 20  #: of code, under each of its keys, that a desk holds beside that of the model at work
_REGION = 4  #: times as long as its layers would take one by one: they are compiled so, too, and their tasks compared


class Desk:
    """Makes objects of steps: it has worker processes, and holds what they have made so far. It is a context manager.

    Every object is filed under two keys: the question, in which tiles and points are free, and the answer, in which
    they are those that were chosen. So to emit what has just been decided compiles nothing.
    """

    def __init__(self, jobs: int | None = None, store: ObjectStore | None = None) -> None:
        """Open a desk with ``jobs`` processes that share the work where there is much of it (None: as many as there are
        CPUs); images do not depend on it. ``store``: where objects are found that were made before, and others kept
        (None: nowhere). Raises :class:`CompileError` for no process at all."""
        if jobs is not None and jobs < 1:
            raise CompileError(f"jobs must be at least 1, not {jobs}")
        self._workers, self._store = Workers(jobs or cpus()), store
        self._objects: dict[str, StepObject | CompileError] = {}

    def __enter__(self) -> "Desk":
        self._workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)
        if self._store:  # once: to look through the store takes longer than to make an object
            self._store.prune()

    def compile(
        self, steps: Sequence[ModelStep], placement: TensorPlacement, budget: Lv2Budget, params: SocParams,
        limits: PointLimits | None,
    ) -> tuple[list[StepObject], list[ModelStep]]:  # fmt: skip
        """Return the objects of all ``steps`` with their weights, or else the free regions whose members cannot be one.
        Raises :class:`CompileError` for the first other step that has none, :class:`PlanError` if what is decided about
        it does not do."""
        longest = limits.longest if limits else 0
        start = next((number for number, step in enumerate(steps) if not isinstance(step.members[0], LoadLayer)), 0)
        last = max((number for number, step in enumerate(steps) if not step.on_host), default=0)
        around = KernelContext(params, 0, placement, budget, longest, loads_longest=_loads_longest(steps, params))
        contexts = [
            replace(around, number=number, starts=number == start, ends=number == last) for number in range(len(steps))
        ]
        if limits:  # by an estimate: to choose points again would take as long as all else
            about = sum(_cycles(step, placement.tensors, params) for step in steps if not step.on_host)
            limits = limits.limited(int(params.engines * about))
        questions = {
            context.number: Question.of(step, context, limits)
            for step, context in zip(steps, contexts, strict=True)
            if not step.on_host
        }
        hopeless = self._hopeless({number: questions[number] for number in questions if steps[number].places})
        self._answer({one.key: one for number, one in questions.items() if number not in hopeless})
        refused = list[ModelStep]()
        for number, question in questions.items():
            step = steps[number]
            if number in hopeless:
                refused.append(step)
                continue
            made = self._objects[question.key]
            if isinstance(made, StepObject):
                continue
            if not step.free:
                kind = OtherJobsError if isinstance(made, OtherJobsError) else PlanError
                raise kind(f"step {number} ({step.name!r}): {made}") from made
            if not step.places:
                step_jobs(step, contexts[number])  # fails likewise, and knows names
                raise made
            refused.append(step)
        if refused:
            return [], refused
        return [
            self._weighted(number, questions[number]) if number in questions else StepObject()
            for number in range(len(steps))
        ], []

    def _hopeless(self, regions: Mapping[int, Question]) -> set[int]:
        """Return which free ``regions`` cannot be one since one like them cannot, the first of several: networks repeat
        themselves, and to find out takes as long as to compile."""
        alike = defaultdict[str, list[int]](list)
        for number, question in regions.items():
            if question.step.free:
                alike[question.likeness].append(number)
        several = [numbers for numbers in alike.values() if len(numbers) > 1]
        firsts = [regions[numbers[0]] for numbers in several]
        self._answer({one.key: one for one in firsts})
        refused = [isinstance(self._objects[one.key], CompileError) for one in firsts]
        return {number for numbers, no in zip(several, refused, strict=True) if no for number in numbers}

    def _answer(self, questions: Mapping[str, Question]) -> None:
        """Have the objects of ``questions``."""
        self._make_room(questions)
        for key in questions.keys() - self._objects.keys():
            if self._store and (found := self._store.find(key)) is not None:
                kept = found if isinstance(found, StepObject) else CompileError(found.why)
                answer = self._file(key, questions[key], kept)
                if answer is not None:
                    self._store.used(answer)
        effort = {key: _effort(question) for key, question in questions.items() if key not in self._objects}
        if sum(effort.values()) > _MANY_CYCLES:
            self._workers.start()
        missing = sorted(effort, key=lambda key: -effort[key])  # of equals in the order of the steps
        results = self._workers.map(step_object, [questions[key] for key in missing])
        for key, made in zip(missing, results, strict=True):
            if isinstance(made, Exception) and not isinstance(made, CompileError):
                raise made
            answer = self._file(key, questions[key], made)
            if self._store and isinstance(made, StepObject):
                self._store.keep(key, made, answer)
            elif self._store and questions[key].step.free and questions[key].step.places:
                self._store.keep(key, RefusedRegion(str(made)))

    def _file(self, key: str, question: Question, made: StepObject | CompileError) -> str | None:
        """File the object of ``question``, which has ``key``; return the key of its answer, if it is a question."""
        self._objects[key] = made
        if not isinstance(made, StepObject) or question.step.jobs is not None:
            return None
        answer = question.answered(made.tiles, without_order(job.plan for job in made.jobs))
        self._objects[answer] = made
        return answer

    def _make_room(self, wanted: Collection[str]) -> None:
        """Forget what was filed first, as far as it is too much and not ``wanted``."""
        held = {key: made.size for key, made in self._objects.items() if isinstance(made, StepObject)}
        total = sum(held.values())
        for key, size in held.items():
            if total <= _MOST_BYTES:
                return
            if key not in wanted:
                total -= size
                del self._objects[key]

    def _weighted(self, number: int, question: Question) -> StepObject:
        made = self._objects[question.key]
        assert isinstance(made, StepObject)
        found = made.weighted(number, question) or step_object(question).weighted(number, question)
        assert found is not None  # the latter has its own weights
        return found


def _effort(question: Question) -> float:
    """About how long the device would compute: so much there is to compile, and what takes long should come first."""
    step, context = question.step, question.context
    return (_REGION if step.places else 1) * _cycles(step, context.placement.tensors, context.params)


def _cycles(step: ModelStep, tensors: Mapping[str, Tensor], params: SocParams) -> float:
    """About how many cycles the device would compute ``step`` with all of its engines."""
    return sum(
        tensors[member.output].size * member.weights[0].size / params.macs
        if isinstance(member, ConvLayer)
        else tensors[member.output].size / params.vec_lanes
        for member in step.members
    )


def _loads_longest(steps: Sequence[ModelStep], params: SocParams) -> bool:
    """Return whether DRAM moves the weights of all ``steps`` for longer than the arrays multiply."""
    layers = [member for step in steps for member in step.members if isinstance(member, ConvLayer)]
    macs = sum(one.weights.size * sum(area.rows * area.cols for area in one.areas) for one in layers)
    return moved(sum(one.weights.size for one in layers), params) > macs / params.macs
