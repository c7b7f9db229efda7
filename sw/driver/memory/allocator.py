"""Gives out memory: aligned pieces of DRAM, and bytes of LV2, of which it is known who used them last."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sw.driver.errors import DriverError, OutOfMemory
from sw.driver.memory.ranges import Range, intersect, normalise, overlap, subtract


class Allocator:
    """Hands out aligned pieces of ``[base, base + size)``, lowest address first.

    ``what`` names the memory in errors. Free blocks are kept sorted by address and merged with neighbours.
    """

    def __init__(self, what: str, base: int, size: int) -> None:
        self.what = what
        self._free: list[tuple[int, int]] = [(base, base + size)] if size else []
        self._used: dict[int, int] = {}
        self._shared: dict[int, int] = {}  #: users beside the first

    @property
    def free_bytes(self) -> int:
        """Return how many bytes are not allocated, in however many blocks."""
        return sum(end - start for start, end in self._free)

    @property
    def largest_block(self) -> int:
        """Return the bytes of the largest free block, before alignment."""
        return max((end - start for start, end in self._free), default=0)

    def allocate(self, size: int, align: int = 1, purpose: str = "data") -> int:
        """Allocate ``size`` > 0 bytes and return their address, a multiple of ``align``; raises :class:`OutOfMemory` if
        none are left."""
        if size < 1 or align < 1:
            raise DriverError(f"{self.what}: cannot allocate {size} bytes aligned to {align} for {purpose}")
        for i, (start, end) in enumerate(self._free):
            address = -(-start // align) * align
            if address + size <= end:
                rest = [(start, address), (address + size, end)]
                self._free[i : i + 1] = [(a, b) for a, b in rest if a < b]
                self._used[address] = size
                return address
        raise OutOfMemory(
            f"{self.what}: no room for {size} bytes of {purpose}: {self.free_bytes} bytes left, "
            f"largest block {self.largest_block}; unload a model or choose a preset with more memory"
        )

    def holds(self, address: int) -> bool:
        """Return whether an allocation starts at ``address``."""
        return address in self._used

    def of_one_user(self, address: int) -> int:
        """Return the size of the allocation at ``address`` if nobody else uses it, otherwise 0."""
        return 0 if self._shared.get(address) else self._used.get(address, 0)

    def share(self, address: int) -> int:
        """Add a user to the allocation at ``address``, which is free once all users have given it back."""
        if not self.holds(address):
            raise DriverError(f"{self.what}: nothing is allocated at 0x{address:x}")
        self._shared[address] = self._shared.get(address, 0) + 1
        return address

    def free(self, address: int) -> None:
        """Give back what :meth:`allocate` or :meth:`share` returned; raises :class:`DriverError` for anything else."""
        if self._shared.get(address):
            self._shared[address] -= 1
            return
        size = self._used.pop(address, 0)
        if not size:
            raise DriverError(f"{self.what}: nothing is allocated at 0x{address:x}")
        blocks = sorted([*self._free, (address, address + size)])
        merged = [blocks[0]]
        for start, end in blocks[1:]:
            if start == merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        self._free = merged


_SEVERAL = object()  #: what more than one tenant may have left: nobody's


@dataclass(frozen=True)
class _Piece:
    """Holds bytes that ``tenant`` used last, and the ``digest`` of all of them, if it is known what they hold."""

    where: Range
    tenant: object
    digest: bytes | None = None


class WindowPool(Allocator):
    """Gives out the ``size`` bytes of LV2 of one device, and keeps whose data lie there. Tenant None is the default
    tenant.

    What was there at the start is the default tenant's, and foreign to all others; with ``several`` it is nobody's. Of
    weights, everything that is not known to lie there is unknown, so that forgetting is always safe.
    """

    def __init__(self, size: int, *, several: bool = False) -> None:
        super().__init__("LV2", 0, size)
        self._pieces = [_Piece((0, size), _SEVERAL if several else None)]  #: disjoint

    def foreign(self, where: Iterable[Range], tenant: str | None, kept: Iterable[Range] = ()) -> list[Range]:
        """Return the bytes of ``where`` that others than ``tenant`` may have used last, without those of ``kept``."""
        others = [piece.where for piece in self._pieces if piece.tenant != tenant]
        return subtract(intersect(others, where), kept) if others else []

    def use(self, where: Iterable[Range], tenant: str | None, weights: Mapping[Range, bytes] | None = None) -> None:
        """Enter ``tenant`` as the user of ``where``, which is clear of others. A model of it may write all of these
        bytes from now on, but for ``weights``, which are its own or become so."""
        where, mine = list(where), (weights or {}).items()
        kept = [p for p in self._pieces if p.tenant == tenant and (p.where, p.digest) in mine]
        self._mark(where, tenant)
        for piece in kept:
            self._mark([piece.where], tenant, piece.digest)

    def pass_through(self, where: Sequence[Range], tenants: Iterable[str | None]) -> None:
        """Enter that data of ``tenants`` may overwrite parts of ``where``; what is not overwritten stays."""
        passing = set(tenants)
        for piece in self._pieces:
            user = piece.tenant if {piece.tenant} == passing else _SEVERAL
            self._mark(intersect([piece.where], where), user)

    def overwritten(self, where: Sequence[Range]) -> None:
        """Forget which weights lie in ``where``: something else was or will be written there, by whoever used it
        last."""
        self._pieces = _merged(_Piece(p.where, p.tenant) if overlap([p.where], where) else p for p in self._pieces)

    def put(self, where: Range, tenant: str | None, digest: bytes) -> None:
        """Enter that a prologue of ``tenant`` has brought these weights, and the job behind it has ended. It is not
        believed of bytes that another tenant may have used since."""
        if not self.foreign([where], tenant):
            self._mark([where], tenant, digest)

    def has_weights(self, where: Range, tenant: str | None, digest: bytes) -> bool:
        """Return whether LV2 has these weights there."""
        return _Piece(where, tenant, digest) in self._pieces

    def _mark(self, where: Iterable[Range], tenant: object, digest: bytes | None = None) -> None:
        """Cut ``where`` out of all pieces, and make pieces of its own of it. What is left of a piece is unknown."""
        where = normalise(where)
        kept = [piece for piece in self._pieces if not overlap([piece.where], where)]
        cut = [piece for piece in self._pieces if overlap([piece.where], where)]
        rest = [_Piece(left, piece.tenant) for piece in cut for left in subtract([piece.where], where)]
        self._pieces = _merged([*kept, *rest, *(_Piece(r, tenant, digest) for r in where)])


def _merged(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Return ``pieces`` in order, with unknown pieces of one tenant that touch made one."""
    result: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece.where):
        last = result[-1] if result else None
        alike = last is not None and last.tenant == piece.tenant and last.digest is piece.digest is None
        if last is not None and alike and last.where[1] == piece.where[0]:
            result[-1] = _Piece((last.where[0], piece.where[1]), piece.tenant)
        else:
            result.append(piece)
    return result
