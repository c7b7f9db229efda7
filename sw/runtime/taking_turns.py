"""Says which loaded models take turns because LV2 has no room for all of them, who claims what, and what mends it."""

from collections.abc import Sequence
from itertools import combinations

from sw.driver import Device, LoadedModel


def turns_taken(device: Device) -> str | None:
    """Return a sentence on the models of ``device`` of which LV2 cannot hold all at once, or None if it can. Where
    windows lie is decided when a request starts, so it does not matter where they lie now, unless code names their
    addresses."""
    use = device.lv2_use()
    claims = [(one.model, one.reserved) for one in use.models if one.reserved]
    if sum(size for _, size in claims) <= use.total and not _fixed_in_place([model for model, _ in claims]):
        return None
    told = ", ".join(f"{model.image.meta.model} {size:,}" for model, size in claims)
    mended = _mended([(model.image.meta.model, size) for model, size in claims], use.total, device.params.lv1_word)
    return f"models take turns: of the {use.total:,} bytes of LV2 claims {told}; {mended} to have them side by side"


def _fixed_in_place(models: Sequence[LoadedModel]) -> bool:
    """Return whether two overlap of which neither can lie elsewhere."""
    return any(a.overlaps(b) and not a.movable and not b.movable for a, b in combinations(models, 2))


def _mended(claims: Sequence[tuple[str, int]], whole: int, word: int) -> str:
    """Return what gives all models windows of their own; ``claims`` are their names and bytes of LV2."""
    total, (name, largest) = sum(size for _, size in claims), max(claims, key=lambda claim: claim[1])
    if total <= whole:
        return "load them anew, the largest first,"
    left = (whole - total + largest) // word * word
    if left > 0:
        return f"compile {name} with --lv2-limit {left}, or without that flag if it had one,"
    share = whole // len(claims) // word * word
    return f"compile each of the {len(claims)} with --lv2-limit {share}, or without that flag if it had one,"
