"""Says which loaded models take turns because their windows in LV2 overlap, who claims what, and what mends it."""

from collections.abc import Sequence
from itertools import combinations

from sw.driver import Device


def turns_taken(device: Device) -> str | None:
    """Return a sentence on the models of ``device`` that cannot run side by side as they were loaded, or None if all
    can. A run time with preemption moves windows, so that an urgent model may run beside what it displaced."""
    use = device.lv2_use()
    claims = [(one.model, one.reserved) for one in use.models]
    pairs = [pair for pair in combinations(claims, 2) if pair[0][0].overlaps(pair[1][0])]
    if not pairs:
        return None
    turning = {id(model) for pair in pairs for model, _ in pair}
    told = ", ".join(f"{model.image.meta.model} {size:,}" for model, size in claims if id(model) in turning)
    mended = _mended([(model.image.meta.model, size) for model, size in claims], use.total, device.params.lv1_word)
    return f"models take turns: of the {use.total:,} bytes of LV2 claims {told}; {mended} to have them side by side"


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
