// The compiled backend: run loop and C interface around a CXXRTL netlist of `sim_top`.
//
// MEMORY names the member that holds the DRAM. With VCD defined the netlist carries debug information and waveforms
// can be written.
//
// The whole design has one clock and only its rising edge matters, so one evaluation per cycle is enough: it
// computes the outputs as they are before the edge and, the clock being high, the registers as they are after it.
// That holds because the netlist has no combinational feedback between CXXRTL's nodes; the build refuses one that has.

#include "netlist.cc"

#ifdef VCD
#include <cxxrtl/cxxrtl_vcd.h>

#include <cstdio>
#endif

namespace {

using Top = cxxrtl_design::p_sim__top;

enum Until { LIMIT = 0, IRQ = 1, RESPONSE = 2 };

struct Simulation {
  Top top;
#ifdef VCD
  cxxrtl::debug_items items;
  cxxrtl::vcd_writer writer;
  FILE *file = nullptr;
  uint64_t cycle = 0;
#endif
};

void clock(Top &top, bool high) { top.p_clk.set<uint32_t>(high); }

// Brings the outputs up to date without a clock edge.
void settle(Top &top) {
  clock(top, false);
  top.eval();
  top.commit();
}

void sample(Simulation &sim) {
#ifdef VCD
  if (!sim.file) return;
  sim.writer.sample(sim.cycle);
  fwrite(sim.writer.buffer.data(), 1, sim.writer.buffer.size(), sim.file);
  sim.writer.buffer.clear();
#else
  (void)sim;
#endif
}

// One clock cycle. Outputs are afterwards what they were during the cycle.
void cycle(Simulation &sim) {
  Top &top = sim.top;
  clock(top, false);
  top.prev_p_clk = top.p_clk;
  clock(top, true);
  top.eval();
  sample(sim);
  top.commit();
#ifdef VCD
  sim.cycle++;
#endif
}

}  // namespace

extern "C" {

void *caesura_create(const char *vcd) {
  auto *sim = new Simulation;
  settle(sim->top);
#ifdef VCD
  if (vcd) {
    sim->file = fopen(vcd, "wb");
    if (!sim->file) {
      delete sim;
      return nullptr;
    }
    sim->top.debug_info(&sim->items, nullptr, "");
    sim->writer.timescale(1, "ns");
    sim->writer.add_without_memories(sim->items);
  }
#else
  (void)vcd;
#endif
  return sim;
}

void caesura_destroy(void *handle) {
  auto *sim = static_cast<Simulation *>(handle);
#ifdef VCD
  if (sim->file) fclose(sim->file);
#endif
  delete sim;
}

// Runs one cycle with a register access on the command inputs.
void caesura_start_access(void *handle, uint32_t write, uint32_t address, uint32_t value) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.p_cmd__write.set<uint32_t>(write);
  sim->top.p_cmd__addr.set<uint32_t>(address);
  sim->top.p_cmd__data.set<uint32_t>(value);
  sim->top.p_cmd__valid.set<uint32_t>(1);
  cycle(*sim);
  sim->top.p_cmd__valid.set<uint32_t>(0);
}

// Sets the random stalls of the DRAM.
void caesura_stall(void *handle, uint32_t rate, uint32_t seed) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.p_stall__rate.set<uint32_t>(rate);
  sim->top.p_stall__seed.set<uint32_t>(seed);
}

// Sets what goes wrong in the DRAM.
void caesura_fault(void *handle, uint32_t kind, uint32_t base, uint32_t last) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.p_fault__kind.set<uint32_t>(kind);
  sim->top.p_fault__base.set<uint32_t>(base);
  sim->top.p_fault__last.set<uint32_t>(last);
}

// Sets the timing of the DRAM; the bandwidth in percent of a beat per cycle.
void caesura_dram_timing(void *handle, uint32_t latency, uint32_t row_miss, uint32_t bandwidth) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.p_dram__latency.set<uint32_t>(latency);
  sim->top.p_dram__row__miss.set<uint32_t>(row_miss);
  sim->top.p_dram__bandwidth.set<uint32_t>(bandwidth);
}

// Runs up to `limit` cycles, ending after the first in which the watched output was high. Returns 2 * cycles, plus
// one if it was high.
uint64_t caesura_run(void *handle, uint64_t limit, int until) {
  auto *sim = static_cast<Simulation *>(handle);
  const auto &irq = sim->top.p_irq;
  const auto &response = sim->top.p_rsp__valid;
  for (uint64_t ran = 1; ran <= limit; ran++) {
    cycle(*sim);
    if ((until == IRQ && irq.get<uint32_t>()) || (until == RESPONSE && response.get<uint32_t>())) return 2 * ran + 1;
  }
  return 2 * limit;
}

// Outputs as they are now: data in the lower half, error in bit 32, interrupt line in bit 33.
uint64_t caesura_outputs(void *handle) {
  Top &top = static_cast<Simulation *>(handle)->top;
  settle(top);
  return top.p_rsp__data.get<uint32_t>() | uint64_t(top.p_rsp__error.get<uint32_t>()) << 32 |
         uint64_t(top.p_irq.get<uint32_t>()) << 33;
}

// The DRAM as bytes.
void *caesura_memory(void *handle) { return &static_cast<Simulation *>(handle)->top.MEMORY[0]; }
}
