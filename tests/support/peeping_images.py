"""Images for tests of what is left in memories: models that store everything they can read in LV2."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Insn, Lv0Space, Op
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.image import CancelPoint, Image, LiveRange
from sw.driver.memory.ranges import accumulator_bytes
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.preempt.copies import copy_fields
from sw.driver.scrub import fill
from tests.support.images import SIZE, copy_image, encode

_STORE = 2048  #: bytes of a store


@dataclass(frozen=True)
class Peeper:
    """An int8 model that returns its input. It first stores all bytes of its LV2 windows, then fills these, LV1 and the
    accumulators with the byte ``own``; then come cancellation points at which the first ``SIZE`` bytes of LV2, half of
    LV1 and a quarter of the accumulators are live, and behind each it stores its windows again."""

    params: SocParams
    own: int
    windows: tuple[int, int]
    points: int = 4

    def image(self) -> Image:
        """The model's image."""
        code: list[Insn] = []
        table: list[CancelPoint] = []
        acc = accumulator_bytes(self.params)
        live = [
            LiveRange(Space.LV2, 6, 0, SIZE, True),
            LiveRange(Space.LV1, 0, 0, self.params.lv1_bytes // 2, True),
            LiveRange(Space.LV0_ACC, 0, 0, acc // 4, True),
        ]
        self._look(code, 0, {"signal": 1})
        for segment, size in zip((6, 7), self.windows, strict=True):
            code += self._fill(Op.LD2, size, {"src_seg": 2, "dst_seg": segment})
        code.append(Insn(Op.LD2, _whole(SIZE) | {"src_seg": 2, "dst_seg": 6}))
        _add(code[-1 - self._fills()], wait=1)
        _add(code[-1], signal=1 << 1 | 1 << 2)
        code += self._fill(Op.LD1, self.params.lv1_bytes, {"src_seg": 6})
        _add(code[-1], signal=1 << 3)
        code += self._fill(Op.LD0, acc, {"space": int(Lv0Space.ACC)})
        _add(code[-1], signal=1 << 4)
        for number in range(self.points):
            table.append(CancelPoint(number, 0, len(code), live=live, reload=[], semaphores=self._counts(number)))
            code.append(Insn(Op.CANCEL, {"point": number}))
            self._look(code, 1 + number, {"wait": 0 if number else 1 << 1})
        code += [Insn(Op.ST2, _whole(SIZE) | {"src_seg": 6, "dst_seg": 3, "wait": 7 << 2}), Insn(Op.END)]
        image = copy_image(self.params, name=f"peep{self.own}")
        meta = image.meta
        looks = (1 + self.points) * sum(self.windows)
        meta.segment_sizes = [len(encode(code)), 0, SIZE, SIZE, looks, 0, *self.windows]
        meta.cancel_points = table
        return Image(meta=meta, code=encode(code), weights=b"")

    def inputs(self) -> npt.NDArray:
        """Inputs of which every byte is ``own`` when it is stored."""
        return np.full((1, 8, 8), (np.int8(np.uint8(self.own)) - 3.0) * 0.5, np.float32)

    def strange(self, model: LoadedModel) -> dict[int, int]:
        """Bytes that its last inference found and that are neither 0 nor its own: how many, by look."""
        raw = model._bus.read_mem(*model.segments[4], charge=False)
        looks = np.frombuffer(raw, np.uint8).reshape(1 + self.points, sum(self.windows))
        found = {i: int(np.count_nonzero((look != 0) & (look != self.own))) for i, look in enumerate(looks)}
        return {i: count for i, count in found.items() if count}

    def _counts(self, number: int) -> list[tuple[int, int]]:
        return [(1, 1), (2, 1), (3, 1), (4, 1)] if not number else [(2, 1), (3, 1), (4, 1)]

    def _fill(self, op: Op, size: int, fields: dict[str, int]) -> list[Insn]:
        return [Insn(insn.op, insn.fields | {"fill": self.own}) for insn in fill(op, size, fields)]

    def _fills(self) -> int:
        return sum(len(fill(Op.LD2, size, {})) for size in self.windows)

    def _look(self, code: list[Insn], look: int, fields: dict[str, int]) -> None:
        """Store both windows; ``fields`` of the last of these stores, but for its ``wait``, which the first has."""
        first, at = len(code), look * sum(self.windows)
        for segment, size in zip((6, 7), self.windows, strict=True):
            places = {"src_seg": segment, "dst_seg": 4}
            for low in range(0, size, _STORE):  # many: points come up while the queue of the unit is full
                part = min(_STORE, size - low)
                code += [Insn(Op.ST2, each | places) for each in copy_fields(low, at + low, part)]
            at += size
        _add(code[first], wait=fields.get("wait", 0))
        _add(code[-1], signal=fields.get("signal", 0))


def _whole(size: int) -> dict[str, int]:
    return copy_fields(0, 0, size)[0]


def _add(insn: Insn, **fields: int) -> None:
    insn.fields.update({name: insn[name] | value for name, value in fields.items()})
