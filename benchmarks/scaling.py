"""Hardware with four times the MACs of another, for the speed-up figure."""

from hw.contract.params import SocParams

FACTOR = 4


def scaled(params: SocParams) -> tuple[SocParams, str]:
    """``params`` with four times the MACs and four times the bandwidth of every memory, and a sentence that says how.

    Twice the engines, each with twice the PEs: a bus word may not be wider than an LV1 word (``pes * rows`` bytes), so
    four times the engines alone could not have four times the DRAM bandwidth. Memories grow with the PEs they serve
    (LV1), LV2 keeps its size, and latencies stay as they are. Raises ``ParamError`` where the result cannot be built.
    """
    larger = params.replace(
        name=f"{params.name}-x{FACTOR}",
        engines=2 * params.engines,
        pes=2 * params.pes,
        vec_lanes=2 * params.vec_lanes,
        lv1_bytes=2 * params.lv1_bytes,
        lv2_banks=2 * params.lv2_banks,
        dram_word=FACTOR * params.dram_word,
    )
    how = (
        f"{larger.engines} engines of {larger.pes} PEs instead of {params.engines} of {params.pes} ({larger.macs} MACs "
        f"instead of {params.macs}), {larger.vec_lanes} vector lanes and {larger.lv1_bytes >> 10} KiB of LV1 per "
        f"engine; LV2 of the same size in {larger.lv2_banks} banks of {larger.lv1_word} bytes; "
        f"DRAM {larger.dram_bytes_per_cycle:g} bytes per cycle instead of {params.dram_bytes_per_cycle:g}, "
        "at the same latency"
    )
    return larger, how
