"""Live ranges of on-chip memory before the linker has fixed their addresses."""

from typing import NamedTuple

from compiler.emission.program.address import Address, JobAddresses
from hw.contract.spaces import OnChip
from hw.image import LiveRange


class LiveBytes(NamedTuple):
    """``size`` bytes at ``address`` of a memory that are needed after a cancellation point. They are dirty, or clean:
    then they can be loaded again, in LV2 from ``source`` in ``source_segment`` of DRAM. See
    :class:`hw.image.image.LiveRange`."""

    space: OnChip
    segment: int
    address: Address
    size: int
    dirty: bool
    source_segment: int | None = None
    source: Address = 0

    def at(self, addresses: JobAddresses) -> LiveRange:
        """Return the entry of the image's table for a job that lies at ``addresses``."""
        start = addresses.resolve(self.address)
        if self.source_segment is None:
            return LiveRange(self.space, self.segment, start, self.size, self.dirty)
        source = addresses.resolve(self.source)
        return LiveRange(self.space, self.segment, start, self.size, self.dirty, self.source_segment, source)
