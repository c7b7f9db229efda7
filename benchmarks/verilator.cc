// Run loop and C interface around Verilator's model of `sim_top`, as those of the compiled backends.

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"

namespace {

enum Until { LIMIT = 0, IRQ = 1, RESPONSE = 2 };

struct Simulation {
  VerilatedContext context;
  Vtop top{&context};
  bool irq = false, response = false;  // as they were during the cycle
};

void settle(Vtop &top) {
  top.clk = 0;
  top.eval();
}

void cycle(Simulation &sim) {
  settle(sim.top);
  sim.irq = sim.top.irq;
  sim.response = sim.top.rsp_valid;
  sim.top.clk = 1;
  sim.top.eval();
}

}  // namespace

extern "C" {

void *caesura_create(const char *) {
  auto *sim = new Simulation;
  settle(sim->top);
  return sim;
}

void caesura_destroy(void *handle) { delete static_cast<Simulation *>(handle); }

void caesura_start_access(void *handle, uint32_t write, uint32_t address, uint32_t value) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.cmd_write = write;
  sim->top.cmd_addr = address;
  sim->top.cmd_data = value;
  sim->top.cmd_valid = 1;
  cycle(*sim);
  sim->top.cmd_valid = 0;
}

void caesura_stall(void *handle, uint32_t rate, uint32_t seed) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.stall_rate = rate;
  sim->top.stall_seed = seed;
}

void caesura_fault(void *handle, uint32_t kind, uint32_t base, uint32_t last) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.fault_kind = kind;
  sim->top.fault_base = base;
  sim->top.fault_last = last;
}

void caesura_dram_timing(void *handle, uint32_t latency, uint32_t row_miss, uint32_t bandwidth) {
  auto *sim = static_cast<Simulation *>(handle);
  sim->top.dram_latency = latency;
  sim->top.dram_row_miss = row_miss;
  sim->top.dram_bandwidth = bandwidth;
}

uint64_t caesura_run(void *handle, uint64_t limit, int until) {
  auto *sim = static_cast<Simulation *>(handle);
  for (uint64_t ran = 1; ran <= limit; ran++) {
    cycle(*sim);
    if ((until == IRQ && sim->irq) || (until == RESPONSE && sim->response)) return 2 * ran + 1;
  }
  return 2 * limit;
}

uint64_t caesura_outputs(void *handle) {
  Vtop &top = static_cast<Simulation *>(handle)->top;
  settle(top);
  return top.rsp_data | uint64_t(top.rsp_error) << 32 | uint64_t(top.irq) << 33;
}

void *caesura_memory(void *handle) { return &static_cast<Simulation *>(handle)->top.rootp->MEMORY[0]; }

const char *caesura_register_names(void) { return ""; }

void caesura_registers(void *, uint64_t *) {}
}
