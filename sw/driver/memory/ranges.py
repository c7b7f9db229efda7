"""Computes with sets of bytes, which are sorted lists of disjoint half-open ranges, and tells which bytes of which
memory a job may overwrite on chip.

An on-chip memory is named by (space, engine): ``(LV2, 0)``, ``(LV1, e)``, ``(LV0_ACC, e)`` in bytes, and
``(LV0_ACT, e)``, one element that stands for activation and weight memories, whose content is always loaded again."""

from collections.abc import Iterable, Mapping, Sequence

from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image import Image

Range = tuple[int, int]  #: first byte and end


def normalise(ranges: Iterable[Range]) -> list[Range]:
    """Return the same bytes as sorted, disjoint, non-empty ranges; ranges that touch are merged."""
    result: list[Range] = []
    for start, end in sorted(r for r in ranges if r[0] < r[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def intersect(a: Iterable[Range], b: Iterable[Range]) -> list[Range]:
    """Return the bytes that are in both sets."""
    others = normalise(b)
    return normalise((max(s, x), min(e, y)) for s, e in a for x, y in others)


def subtract(a: Iterable[Range], b: Iterable[Range]) -> list[Range]:
    """Return the bytes of ``a`` that are not in ``b``."""
    holes = normalise(b)
    result = []
    for first, end in normalise(a):
        start = first
        for low, high in holes:
            if high > start and low < end:
                result.append((start, low))
                start = max(start, high)
        result.append((start, end))
    return normalise(result)


def size(ranges: Iterable[Range]) -> int:
    """Return how many bytes are in the set."""
    return sum(end - start for start, end in normalise(ranges))


def overlap(a: Iterable[Range], b: Iterable[Range]) -> bool:
    """Return whether any byte is in both sets."""
    others = list(b)
    return any(s < y and x < e for s, e in a for x, y in others)


MemoryId = tuple[Space, int]
Footprint = Mapping[MemoryId, Sequence[Range]]  #: ranges of each memory that may be written
LV2: MemoryId = (Space.LV2, 0)
_INT32 = 4


def accumulator_bytes(params: SocParams) -> int:
    """Return the bytes of all accumulators of one engine, as LD0 with space ACC counts them."""
    return params.lv0_acc_rows * row_bytes(params)


def row_bytes(params: SocParams) -> int:
    """Return the bytes of one accumulator row of all PEs of an engine."""
    return params.out_channels * _INT32


def footprint(params: SocParams, windows: Iterable[Range], engines: Iterable[int]) -> dict[MemoryId, list[Range]]:
    """Return the footprint of jobs with these LV2 ``windows`` on these engines: the windows, and all private
    memories."""
    result: dict[MemoryId, list[Range]] = {LV2: normalise(windows)}
    for e in engines:
        result |= {
            (Space.LV1, e): [(0, params.lv1_bytes)],
            (Space.LV0_ACC, e): [(0, accumulator_bytes(params))],
            (Space.LV0_ACT, e): [(0, 1)],
        }
    return result


def engines_of(image: Image) -> list[int]:
    """Return the engines that the jobs of ``image`` name; ``LoadedModel.engines`` says which of the device stand for
    them."""
    return sorted({job.engine for job in image.meta.jobs})
