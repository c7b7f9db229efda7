"""Weights and VEC parameters of a convolution on their way from the weight window to LV0 and LV1.

Every channel tile needs both. Where they are small, as in depthwise layers, one load brings them to LV1 for a whole
*group* of channel tiles. The first groups are single tiles, so that work can start soon; then each has one more than
the one before, as loads get further ahead of their use. Weights go on to LV0 tile by tile: LD0 has little time between
the activations of two tiles.
"""

import itertools
from dataclasses import replace

from compiler.emission.kernels.conv_data import ConvData, blocks
from compiler.emission.program import BufferFill, JobProgram, Ring, Sem, Task, contiguous, lv0_slots
from compiler.plan.layers import PARAMS_SLOTS, ChannelTile, ConvLayer
from compiler.plan.tiling.conv_tiling import ConvTiling, KernelChunk
from hw.contract.isa import Lv0Space, Lv0View, Op
from hw.contract.params import SocParams

Group = tuple[ChannelTile, ...]


def groups_of(tiles: list[ChannelTile], most: int) -> dict[ChannelTile, Group]:
    """Return the group of each tile: consecutive ones, 1, 1, 2, 3, 4, ... in number, ``most`` at most."""
    found: dict[ChannelTile, Group] = {}
    for size in itertools.chain([1], itertools.count(1)):
        if len(found) == len(tiles):
            break
        group = tuple(tiles[len(found) : len(found) + min(size, most)])
        found |= dict.fromkeys(group, group)
    return found


class ConvConstants:
    """The weights and parameters of one job, and where they are held at present.

    With groups (``tiling.group`` > 1) channel tiles are in the outer loop and there is one chunk and one area; then one
    ring of LV1 holds weights and parameters.
    """

    def __init__(
        self, params: SocParams, layer: ConvLayer, tiling: ConvTiling, job: JobProgram, tiles: list[ChannelTile], *,
        weight_ring: int, params_ring: int, stream: Ring | None,
    ) -> None:  # fmt: skip
        """``weight_ring`` and ``params_ring`` are LV1 addresses of rings, the second not used with groups. ``stream``
        is an LV2 ring for weights that come from DRAM chunk by chunk."""
        self._hw, self._layer, self._tiling, self._job, self._stream = params, layer, tiling, job, stream
        self._data: dict[ConvData, bytes] = {}
        self._first_loads: list[Task] = []
        self._groups = groups_of(tiles, tiling.group)
        self._first = {tile.outs: tile for tile in reversed(tiles)}  # of as many channels each
        weight_size, params_size, params_slots = tiling.weight_size, tiling.params_size, PARAMS_SLOTS
        if self._grouped:
            weight_size = params_size = tiling.group * (weight_size + params_size)
            params_ring, params_slots = weight_ring, tiling.weight_slots
        self._weight1 = Ring(Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE, weight_ring, weight_size, tiling.weight_slots)
        self._params = Ring(Sem.PARAMS_FULL, Sem.PARAMS_FREE, params_ring, params_size, params_slots)
        words = tiling.weight_size // params.lv1_word
        slots = lv0_slots(words, params.lv0_wgt_bytes // params.rows)
        self._weight0 = Ring(Sem.WEIGHT0_FULL, Sem.WEIGHT0_FREE, 0, words, slots)

    @property
    def _grouped(self) -> bool:
        return self._tiling.group > 1

    def load_once(self, data: bytes, target: int, part: ConvData | None = None) -> None:
        """Load ``data`` that all tiles share, which ``part`` makes, to LV1 address ``target``; call before parameters
        are asked for."""
        self._first_loads += self._job.load_constant(data, target, part)

    # -- weights ---------------------------------------------------------------------------------------------
    def weights(self, tile: ChannelTile, chunk: KernelChunk) -> BufferFill:
        """Return the LV0 buffer with the weights of ``chunk``, loaded on the way if need be."""
        if self._layer.uniform and not self._grouped:
            tile, chunk = self._first[tile.outs], replace(chunk, row=0, col=0, channels=self._first[tile.outs].channels)
        key = (tile, chunk)

        def load(held: BufferFill) -> list[Task]:
            source, address = self._in_group(tile, chunk) if self._grouped else self._single(tile, chunk)
            size = len(self._bytes(self._weights_of(tile, chunk)))
            copies = contiguous(address, held.address * self._hw.lv1_word, size)
            loads = self._job.emit_all(Op.LD0, copies, space=Lv0Space.WGT, view=Lv0View.INTERLEAVED)
            self._weight1.read_by(source, *loads)
            return loads

        return self._weight0.holding(key, load)

    def weights_read_by(self, fill: BufferFill, task: Task) -> None:
        """``task`` reads what :meth:`weights` returned."""
        self._weight0.read_by(fill, task)

    def _single(self, tile: ChannelTile, chunk: KernelChunk) -> tuple[BufferFill, int]:
        key = (tile, chunk)
        part = self._weights_of(tile, chunk)
        held = self._weight1.holding(key, lambda fill: self._load(part, key, fill.address))
        return held, held.address

    def _load(self, part: ConvData, key: tuple[ChannelTile, KernelChunk], target: int) -> list[Task]:
        data = self._bytes(part)
        if self._stream is None:
            return self._job.load_window(self._job.keep(data, part), target, len(data))
        slot = self._stream.fill(key)
        self._stream.filled_by(slot, self._job.load_streamed(data, slot.address, part))
        loads = self._job.emit_all(Op.LD1, contiguous(slot.address, target, len(data)), src_seg=6)
        self._stream.read_by(slot, *loads)
        return loads

    def _weights_of(self, tile: ChannelTile, chunk: KernelChunk) -> ConvData:
        return ConvData(self._layer.output, self._tiling.fold, ((tile, chunk),))

    def _params_of(self, tile: ChannelTile, area: int) -> ConvData:
        return ConvData(self._layer.output, self._tiling.fold, (), ((tile, area),))

    def _bytes(self, part: ConvData) -> bytes:
        if part not in self._data:
            self._data[part] = blocks(part, self._layer, self._hw)
        return self._data[part]

    # -- groups ----------------------------------------------------------------------------------------------
    def _in_group(self, tile: ChannelTile, chunk: KernelChunk) -> tuple[BufferFill, int]:
        """Return the LV1 buffer with all weights of a group, then all its parameters, and the address of a tile's
        weights."""
        group = self._groups[tile]
        held = self._weight1.find(group)
        if held is None:
            held, params = self._weight1.fill(group), self._params.fill(group)
            chunks, areas = tuple((other, chunk) for other in group), tuple((other, 0) for other in group)
            part = ConvData(self._layer.output, self._tiling.fold, chunks, areas)
            loads = [*self._taken_first_loads(), *self._load(part, (tile, chunk), held.address)]
            self._weight1.filled_by(held, loads)
            self._params.filled_by(params, loads)  # last, so that the loads belong to the buffer that lives longer
        return held, held.address + group.index(tile) * self._tiling.weight_size

    # -- VEC parameters --------------------------------------------------------------------------------------
    def params(self, tile: ChannelTile, area: int) -> tuple[BufferFill, int]:
        """Return the LV1 buffer with the VEC parameters of a channel tile, loaded if need be, and their address. Those
        of a group have come with its weights."""
        if self._grouped:
            group = self._groups[tile]
            held = self._params.find(group)
            assert held is not None
            offset = len(group) * self._tiling.weight_size + group.index(tile) * self._tiling.params_size
            return held, held.address + offset
        part = self._params_of(tile, area)

        def load(fill: BufferFill) -> list[Task]:
            data = self._bytes(part)
            loads = self._job.load_window(self._job.keep(data, part), fill.address, len(data))
            return [*self._taken_first_loads(), *loads]

        held = self._params.holding((tile, area), load)
        return held, held.address

    def params_read_by(self, fill: BufferFill, task: Task) -> None:
        """``task`` reads what :meth:`params` returned."""
        self._params.read_by(fill, task)

    def _taken_first_loads(self) -> list[Task]:
        loads, self._first_loads = self._first_loads, []
        return loads
