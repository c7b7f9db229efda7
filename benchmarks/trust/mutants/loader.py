"""Breakages of the loader: what it checks of an image."""

from benchmarks.trust.mutants.mutant import Mutant

_CHECK, _LIMITS, _IMAGES = "hw/image/check.py", "hw/image/limits.py", ("images",)

LOADER = (
    Mutant(
        "L1", "a tensor may end one byte behind its segment", _CHECK,
        "tensor.offset + size > sizes[tensor.segment]", "tensor.offset + size > sizes[tensor.segment] + 1",
        "P1", _IMAGES,
    ),
    Mutant(
        "L2", "a port may be larger than its tensor", _CHECK,
        "elif math.prod(port.shape) != math.prod(shapes[port.tensor]):", "elif not math.prod(shapes[port.tensor]):",
        "P1", _IMAGES,
    ),
    Mutant(
        "L3", "promises about weights that stay are believed", _CHECK,
        "    yield from promise_problems(image)\n", "",
        "P1", _IMAGES,
    ),
    Mutant(
        "L4", "a point may run any instruction again", _CHECK,
        "if not 0 <= pc < count or _op(image, pc) not in _LOADS:", "if not 0 <= pc < count:",
        "P1", _IMAGES,
    ),
    Mutant(
        "L5", "a live range may end one byte behind its memory", _CHECK,
        "not 0 <= one.offset <= size - one.size:", "not 0 <= one.offset <= size - one.size + 1:",
        "P1", (*_IMAGES, "exchange"),
    ),
    Mutant(
        "L6", "the copy of a clean range may end one byte behind its segment", _CHECK,
        "one.source_offset <= self._segments[source] - one.size",
        "one.source_offset <= self._segments[source] - one.size + 1",
        "P1", _IMAGES,
    ),
    Mutant(
        "L7", "a window may end one byte behind its segment", _CHECK,
        "if not 0 <= start <= start + size <= room:", "if not 0 <= start <= start + size <= room + 1:",
        "P1", _IMAGES,
    ),
    Mutant(
        "L8", "code may name semaphores and PEs that are not there", _LIMITS,
        "    yield from _masks(image, params)\n", "",
        "P1", _IMAGES,
    ),
    Mutant(
        "L9", "a point may run one load more again than there is room for", _LIMITS,
        "if len(point.reload) > MOST_RELOADS:", "if len(point.reload) > MOST_RELOADS + 1:",
        "L", _IMAGES,
    ),
    Mutant(
        "L10", "bodies may write where weights stay", "hw/image/windows.py",
        "    yield from _writes(image, low, low + size, place)\n", "",
        "T", (*_IMAGES, "storms"),
    ),
    Mutant(
        "L11", "a CANCEL need not be in the table", _LIMITS,
        "if listed.get(pc) != number:", "if listed.get(pc, number) != number:",
        "P3", _IMAGES,
    ),
)  # fmt: skip
