"""The interconnect between random clients and a slave that reorders, interleaves, stalls and fails."""

import gc
import random
from collections import deque

import pytest
from amaranth.sim import Simulator

from hw.axi.interconnect import AxiInterconnect
from hw.contract.params import preset

PARAMS = preset("tiny")
WORD = PARAMS.dram_word
SLVERR, DECERR = 2, 3


def error_at(addr: int) -> int:
    """The response of the modelled slave: some addresses fail."""
    return {0: SLVERR, 1: DECERR}.get(addr // WORD % 13, 0)


class Slave:
    """An AXI slave: any order between IDs, R beats of different IDs interleaved, random stalls."""

    def __init__(self, axi, rng, stall):
        self.axi, self.rng, self.stall = axi, rng, stall
        self.reads: dict[int, deque] = {}  # id -> beats (data, resp, last)
        self.aw: deque = deque()
        self.beats: deque = deque()
        self.responses: dict[int, deque] = {}
        self.memory: dict[int, tuple[int, int]] = {}
        self.attributes: dict[str, list[tuple[int, int]]] = {"ar": [], "aw": []}  #: AxCACHE and AxPROT of each burst

    def _stalls(self):
        return self.rng.random() < self.stall

    async def _accept(self, ctx, channel, fields):
        """Take one transfer from a master channel."""
        ready, valid = getattr(self.axi, f"{channel}ready"), getattr(self.axi, f"{channel}valid")
        while self._stalls():
            await ctx.tick()
        ctx.set(ready, 1)
        while True:
            sampled = await ctx.tick().sample(valid, *(getattr(self.axi, channel + f) for f in fields))
            if sampled[2]:
                ctx.set(ready, 0)
                return sampled[3:]

    async def _offer(self, ctx, channel, values):
        """Drive one transfer into a slave channel."""
        valid, ready = getattr(self.axi, f"{channel}valid"), getattr(self.axi, f"{channel}ready")
        for name, value in values.items():
            ctx.set(getattr(self.axi, channel + name), value)
        ctx.set(valid, 1)
        while not (await ctx.tick().sample(ready))[2]:
            pass
        ctx.set(valid, 0)

    async def read_address(self, ctx):
        while True:
            fields = ("id", "addr", "len", "size", "burst", "cache", "prot")
            ident, addr, length, size, burst, *attributes = await self._accept(ctx, "ar", fields)
            assert 1 << size == WORD and burst == 1
            self.attributes["ar"].append(tuple(attributes))
            beats = [(a, error_at(a), a == addr + length * WORD) for a in range(addr, addr + (length + 1) * WORD, WORD)]
            self.reads.setdefault(ident, deque()).extend(beats)

    async def read_data(self, ctx):
        while True:
            busy = [ident for ident, beats in self.reads.items() if beats]
            if not busy or self._stalls():
                await ctx.tick()
                continue
            ident = self.rng.choice(busy)
            addr, resp, last = self.reads[ident].popleft()
            await self._offer(ctx, "r", {"id": ident, "data": addr * 3, "resp": resp, "last": last})

    async def write_address(self, ctx):
        while True:
            *taken, cache, prot = await self._accept(ctx, "aw", ("id", "addr", "len", "cache", "prot"))
            self.aw.append(tuple(taken))
            self.attributes["aw"].append((cache, prot))

    async def write_data(self, ctx):
        while True:
            self.beats.append(await self._accept(ctx, "w", ("data", "strb", "last")))

    async def write_memory(self, ctx):
        """Join AW and W in order; queue responses."""
        while True:
            if not self.aw or len(self.beats) <= self.aw[0][2]:
                await ctx.tick()
                continue
            ident, addr, length = self.aw.popleft()
            resp = 0
            for i in range(length + 1):
                data, strb, last = self.beats.popleft()
                assert last == (i == length)
                self.memory[addr + i * WORD] = (data, strb)
                resp = max(resp, error_at(addr + i * WORD))
            self.responses.setdefault(ident, deque()).append(resp)

    async def write_response(self, ctx):
        while True:
            busy = [ident for ident, queue in self.responses.items() if queue]
            if not busy or self._stalls():
                await ctx.tick()
                continue
            ident = self.rng.choice(busy)
            await self._offer(ctx, "b", {"id": ident, "resp": self.responses[ident].popleft()})

    def add_to(self, sim):
        reads = (self.read_address, self.read_data)
        writes = (self.write_address, self.write_data, self.write_memory, self.write_response)
        for bench in reads + writes:
            sim.add_testbench(bench, background=True)


async def put(ctx, stream, value):
    ctx.set(stream.payload, value)
    ctx.set(stream.valid, 1)
    while not (await ctx.tick().sample(stream.ready))[2]:
        pass
    ctx.set(stream.valid, 0)


async def get(ctx, stream):
    ctx.set(stream.ready, 1)
    while True:
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        if valid:
            ctx.set(stream.ready, 0)
            return payload


def random_bursts(rng, count):
    for _ in range(count):
        beats = rng.choice((1, 1, 2, 3, 16))
        page = rng.randrange(64) * 4096
        yield page + rng.randrange(4096 // WORD - beats + 1) * WORD, beats


def simulate(dut, slave, benches, cycles=60_000, background=()):
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    slave.add_to(sim)
    done = []

    def finishing(bench):
        async def run(ctx):
            await bench(ctx)
            done.append(bench)

        return run

    async def limit(ctx):
        for _ in range(cycles):
            if len(done) == len(benches):
                return
            await ctx.tick()
        pytest.fail(f"only {len(done)} of {len(benches)} test benches finished in {cycles} cycles")

    for bench in background:
        sim.add_testbench(bench, background=True)
    for bench in benches:
        sim.add_testbench(finishing(bench), background=True)
    sim.add_testbench(limit)
    sim.run()


@pytest.mark.parametrize(("seed", "readers", "writers", "stall"), [(1, 3, 2, 0.4), (2, 1, 1, 0.0), (3, 5, 4, 0.1)])
def test_every_client_sees_its_own_bursts_in_order(seed, readers, writers, stall):
    rng = random.Random(seed)
    dut = AxiInterconnect(PARAMS, readers=readers, writers=writers)
    slave = Slave(dut.axi, rng, stall)
    benches, expected_memory = [], {}

    def pause():
        return rng.random() < stall

    def reader(port):
        bursts = list(random_bursts(rng, 25))

        async def request(ctx):
            for addr, beats in bursts:
                while pause():
                    await ctx.tick()
                await put(ctx, port.req, {"addr": addr, "beats": beats})

        async def receive(ctx):
            for addr, beats in bursts:
                for i in range(beats):
                    while pause():
                        await ctx.tick()
                    beat = await get(ctx, port.data)
                    at = addr + i * WORD
                    assert (beat.data, beat.last, beat.error) == (at * 3, i == beats - 1, error_at(at) != 0)

        return request, receive

    def writer(port, number):
        bursts = [(addr + (number << 20), beats) for addr, beats in random_bursts(rng, 25)]
        contents = [[(rng.getrandbits(8 * WORD), rng.getrandbits(WORD)) for _ in range(b)] for _, b in bursts]
        for (addr, _), beats in zip(bursts, contents, strict=True):
            expected_memory.update({addr + i * WORD: beat for i, beat in enumerate(beats)})

        async def request(ctx):
            for addr, beats in bursts:
                while pause():
                    await ctx.tick()
                await put(ctx, port.req, {"addr": addr, "beats": beats})

        async def send(ctx):
            for beats in contents:
                for i, (data, strb) in enumerate(beats):
                    while pause():
                        await ctx.tick()
                    await put(ctx, port.data, {"data": data, "strb": strb, "last": i == len(beats) - 1})

        async def respond(ctx):
            for addr, beats in bursts:
                while pause():
                    await ctx.tick()
                response = await get(ctx, port.rsp)
                assert response.error == any(error_at(addr + i * WORD) for i in range(beats))

        return request, send, respond

    for i in range(readers):
        benches += reader(dut.read[i])
    for i in range(writers):
        benches += writer(dut.write[i], i)
    simulate(dut, slave, benches)
    assert slave.memory == expected_memory


def test_bursts_have_the_attributes_of_the_cycle_in_which_they_were_accepted():
    rng = random.Random(7)
    dut = AxiInterconnect(PARAMS, readers=1, writers=1)
    slave, expected = Slave(dut.axi, rng, 0.5), {"ar": [], "aw": []}

    async def change(ctx):
        while True:
            ctx.set(dut.attributes, {name: rng.randrange(8) for name in ("arcache", "arprot", "awcache", "awprot")})
            taken = [(channel, port.req) for channel, port in (("ar", dut.read[0]), ("aw", dut.write[0]))]
            accepted = await ctx.tick().sample(dut.attributes, *(req.valid & req.ready for _, req in taken))
            for (channel, _), happened in zip(taken, accepted[3:], strict=True):
                if happened:
                    now = accepted[2]
                    expected[channel].append((now[f"{channel}cache"], now[f"{channel}prot"]))

    async def read(ctx):
        for i in range(40):
            await put(ctx, dut.read[0].req, {"addr": 64 * i, "beats": 1})
            await get(ctx, dut.read[0].data)

    async def write(ctx):
        for i in range(40):
            await put(ctx, dut.write[0].req, {"addr": 64 * i, "beats": 1})
            await put(ctx, dut.write[0].data, {"data": i, "strb": 1, "last": 1})
            await get(ctx, dut.write[0].rsp)

    simulate(dut, slave, [read, write], background=[change])
    assert slave.attributes == expected and len(set(expected["ar"])) > 10


def test_single_beats_of_all_clients_flow_at_one_per_cycle_and_fairly():
    dut = AxiInterconnect(PARAMS, readers=3, writers=3)
    ids: list[int] = []
    beats = 0

    async def bench(ctx):
        nonlocal beats
        for i in range(3):
            ctx.set(dut.read[i].req.valid, 1)
            ctx.set(dut.read[i].req.payload, {"addr": 64 * i, "beats": 1})
            ctx.set(dut.write[i].req.valid, 1)
            ctx.set(dut.write[i].req.payload, {"addr": 64 * i, "beats": 1})
            ctx.set(dut.write[i].data.valid, 1)
            ctx.set(dut.write[i].data.payload, {"data": i, "strb": 255, "last": 1})
        ctx.set(dut.axi.arready, 1)
        ctx.set(dut.axi.awready, 1)
        ctx.set(dut.axi.wready, 1)
        for _ in range(60):
            _, _, arvalid, arid, wvalid = await ctx.tick().sample(dut.axi.arvalid, dut.axi.arid, dut.axi.wvalid)
            beats += wvalid
            if arvalid:
                ids.append(arid)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    assert len(ids) >= 58 and beats >= 57
    assert all(ids.count(i) >= len(ids) // 3 for i in range(3))


@pytest.mark.filterwarnings("ignore:.*created but never used")
@pytest.mark.parametrize("count", [0, 65])
def test_number_of_clients_is_limited_by_the_ids(count):
    with pytest.raises(ValueError, match="readers must be 1 to 64"):
        AxiInterconnect(PARAMS, readers=count, writers=1)
    gc.collect()
