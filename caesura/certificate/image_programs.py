"""Reads the programs of an image: bodies and prologues, from their entries to their END."""

from bisect import bisect_left

from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.image import Image


class ImagePrograms:
    """Decodes the programs of ``image``."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._ends = [pc for pc, op in enumerate(image.code[::INSN_BYTES]) if op == Op.END]

    def bodies(self) -> list[list[Insn]]:
        """Return the body of each job."""
        return [self._from(job.body_pc) for job in self._image.meta.jobs]

    def prologues(self) -> list[list[Insn]]:
        """Return the prologue of each job, which is empty if it has none."""
        return [[] if job.prologue_pc is None else self._from(job.prologue_pc) for job in self._image.meta.jobs]

    def at(self, pcs: list[int]) -> list[Insn]:
        """Return single instructions."""
        return [self._decoded(pc) for pc in pcs]

    def _from(self, entry: int) -> list[Insn]:
        end = self._ends[bisect_left(self._ends, entry)]
        return [self._decoded(pc) for pc in range(entry, end + 1)]

    def _decoded(self, pc: int) -> Insn:
        return Insn.decode(self._image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])
