"""Cuts the operations of an inference into stretches, each of which runs without the host: kernels that are linked to a
program, or an operation alone."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from caesura.lengths.bucket_kernels import takes_last_row
from caesura.lengths.loaded_kernels import Kernel
from caesura.lengths.operation_demands import OperationStep
from compiler import LAST_ROW
from hw.image import Image
from sw.driver import KernelUse, ProgramPlan, ProgramPlanner


@dataclass(frozen=True)
class OperationStretch:
    """Is operations that run one behind the other. ``kernels``: of each, None for one on the CPU, which is alone.
    ``plan``: of the program that they are linked to; None for one alone. ``why``: why the host carries what the first
    reads of the operations before; empty if it reads nothing of them."""

    steps: tuple[OperationStep, ...]
    kernels: tuple[Kernel | None, ...]
    plan: ProgramPlan | None = None
    why: str = ""

    def alone(self, why: str) -> "list[OperationStretch]":
        """Return each of its operations alone, for which there is a reason."""
        parts = list(zip(self.steps, self.kernels, strict=True))
        return [
            OperationStretch((step,), (kernel,), None, self.why if not at else why)
            for at, (step, kernel) in enumerate(parts)
        ]


def stretches_of(
    steps: Sequence[OperationStep], chosen: Mapping[str, Kernel | None], results: Sequence[str],
    image_of: Callable[[Kernel], Image], name: str,
) -> list[OperationStretch]:  # fmt: skip
    """Return the stretches of an inference in which operations have the kernels that were ``chosen``, as long as can
    be. ``results``: the model's outputs; ``image_of`` gives the image of a kernel; ``name``: the model's."""
    found: list[OperationStretch] = []
    begun: list[OperationStep] = []
    planner, why = ProgramPlanner({}), ""

    def end() -> None:
        if begun:
            kernels = tuple(chosen.get(step.operation.name) for step in begun)
            plan = planner.plan(f"{name}, {len(begun)} kernels") if len(begun) > 1 else None
            found.append(OperationStretch(tuple(begun), kernels, plan, why))
            begun.clear()

    for at, step in enumerate(steps):
        kernel = chosen.get(step.operation.name)
        if kernel is None:
            end()
            found.append(OperationStretch((step,), (None,), None, "it is computed by the CPU"))
            why = "the operation before is computed by the CPU"
            continue
        use = _use(step, kernel, image_of(kernel))
        problem = planner.add(use) if begun else None
        if begun and problem is not None:
            end()
            why = problem
        if not begun:
            planner = ProgramPlanner(_readers(steps[at:], results))
            problem = planner.add(use)
        begun.append(step)
        if problem is not None and len(begun) == 1:  # it runs alone, whatever comes behind
            end()
            why = f"the operation before runs alone: {problem}"
    end()
    made: set[str] = set()
    for number, stretch in enumerate(found):
        read = {each for step in stretch.steps for each in step.operation.inputs.values()}
        if not read & made:
            found[number] = replace(stretch, why="")
        made |= {each for step in stretch.steps for each in step.operation.outputs.values()}
    return found


def _readers(steps: Sequence[OperationStep], results: Sequence[str]) -> Counter[str]:
    """Return how many read each tensor: operations from these ``steps`` on, and the user."""
    return Counter(each for step in steps for each in step.operation.inputs.values()) + Counter(results)


def _use(step: OperationStep, kernel: Kernel, image: Image) -> KernelUse:
    numbers = {LAST_ROW: LAST_ROW} if takes_last_row(step.operation, kernel) else {}
    return KernelUse(step.operation.name, image, {**step.operation.inputs, **numbers}, step.operation.outputs)
