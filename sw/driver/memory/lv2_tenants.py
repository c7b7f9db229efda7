"""Knows whose data lie in LV2: which tenant used which bytes last."""

from collections.abc import Iterable, Sequence

from sw.driver.memory.ranges import Range, intersect, normalise, subtract

_SEVERAL = object()  #: what more than one tenant may have left: nobody's


class Lv2Tenants:
    """Keeps the tenant of each of ``size`` bytes of LV2, None being the default tenant.

    What was there at the start is the default tenant's, and foreign to all others; with ``several`` it is nobody's.
    """

    def __init__(self, size: int, *, several: bool = False) -> None:
        self._used: list[tuple[Range, object]] = [((0, size), _SEVERAL if several else None)]  #: disjoint

    def foreign(self, where: Iterable[Range], tenant: str | None, kept: Iterable[Range] = ()) -> list[Range]:
        """Return the bytes of ``where`` that others than ``tenant`` may have used last, without those of ``kept``."""
        others = [piece for piece, user in self._used if user != tenant]
        return subtract(intersect(others, where), kept) if others else []

    def use(self, where: Sequence[Range], tenant: str | None) -> None:
        """Enter ``tenant`` as the user of ``where`` from now on, which is clear of others."""
        self._mark(where, tenant)

    def pass_through(self, where: Sequence[Range], tenants: Iterable[str | None]) -> None:
        """Enter that data of ``tenants`` may overwrite parts of ``where``; what is not overwritten stays."""
        passing = set(tenants)
        for user, mine in self._by_user(where):
            self._mark(mine, user if {user} == passing else _SEVERAL)

    def _by_user(self, where: Sequence[Range]) -> list[tuple[object, list[Range]]]:
        return [(user, intersect([piece], where)) for piece, user in self._used]

    def _mark(self, where: Sequence[Range], user: object) -> None:
        where = normalise(where)
        kept = [(piece, other) for old, other in self._used for piece in subtract([old], where)]
        same = normalise([*where, *(piece for piece, other in kept if other == user)])
        self._used = [entry for entry in kept if entry[1] != user] + [(piece, user) for piece in same]
