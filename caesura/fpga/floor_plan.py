"""Says where the cells of each room of a placed design lie."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from caesura.fpga.area import module_of

#: How many rooms a plan tells apart, and the share of the cells below which a module is none.
_ROOMS, _SHARE = 12, 0.01
_OTHER = "all else"
_TILE = re.compile(r"X(\d+)/Y(\d+)/")


def floor_plan(placed: Mapping[str, Any], modules: Collection[str]) -> dict[str, Any]:
    """Return where cells lie on the part: ``rooms``, which are names of modules, that with the most cells first, and
    ``tiles``, each as column, row, the room that has most of its cells, and how many cells of all rooms it has.

    ``placed`` is the top module as nextpnr writes it, ``modules`` are the paths of its instances. Rooms are modules
    of the lowest level of which the larger ones are few enough to be told apart; the rest is one room.
    """
    known = set(modules)
    where: list[tuple[tuple[int, int], str]] = []
    for name, cell in placed["cells"].items():
        if tile := _TILE.match(cell["attributes"].get("NEXTPNR_BEL", "")):
            where.append(((int(tile[1]), int(tile[2])), module_of(name, known)))
    rooms = _rooms(Counter(module for _, module in where))
    tiles: dict[tuple[int, int], Counter[str]] = {}
    for tile_of, module in where:
        tiles.setdefault(tile_of, Counter())[_room(module, rooms)] += 1
    sizes = Counter({room: sum(tile[room] for tile in tiles.values()) for room in (*sorted(rooms), _OTHER)})
    names = [room for room, cells in sizes.most_common() if cells]
    return {
        "rooms": names,
        "tiles": [
            [x, y, names.index(tile.most_common(1)[0][0]), tile.total()] for (x, y), tile in sorted(tiles.items())
        ],
    }


def _rooms(cells: Mapping[str, int]) -> set[str]:
    """Return the modules to tell apart, by the ``cells`` that each has of its own."""
    whole = sum(cells.values())
    found: set[str] = set()
    for depth in range(1, 1 + max((module.count(".") + 1 for module in cells), default=0)):
        sizes: Counter[str] = Counter()
        for module, number in cells.items():
            sizes[".".join(module.split(".")[:depth])] += number
        large = {module for module, number in sizes.items() if module and number >= _SHARE * whole}
        if len(large) > _ROOMS:
            break
        found = large
    return found


def _room(module: str, rooms: Collection[str]) -> str:
    parts = module.split(".")
    ends = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((path for path in ends if path in rooms), _OTHER)
