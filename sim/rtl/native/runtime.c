// The run loop and the C interface of the native simulator, the same for every design.

#include <stdlib.h>
#include <string.h>

enum Until { LIMIT = 0, IRQ = 1, RESPONSE = 2 };

#ifdef PROFILE
static u64 evaluations[BUNDLES], ticks[BUNDLES];

static inline void evaluate(State *s, int bundle) {
  const u64 begin = __builtin_readcyclecounter();
  EVALUATE[bundle](s);
  ticks[bundle] += __builtin_readcyclecounter() - begin;
  evaluations[bundle]++;
}

// For every bundle how often it was evaluated, and the processor's ticks in it, of all simulations together.
void caesura_profile(u64 *counts, u64 *times) {
  memcpy(counts, evaluations, sizeof evaluations);
  memcpy(times, ticks, sizeof ticks);
}
#else
static inline void evaluate(State *s, int bundle) { EVALUATE[bundle](s); }
#endif

// One clock cycle. Outputs are afterwards what they were during the cycle.
static inline void cycle(State *s) {
  for (int k = 0; k < WORDS; k++) {
    s->now[k] = s->next[k];
    s->next[k] = 0;
  }
  for (int k = 0; k < WORDS; k++) {
    // A bundle only asks for bundles that come after it.
    for (u64 set; (set = s->now[k]);) {
      s->now[k] = set & (set - 1);
      evaluate(s, 64 * k + __builtin_ctzll(set));
    }
  }
  for (u32 i = 0; i < s->commit_count; i++) COMMIT[s->commits[i]](s);
  s->commit_count = 0;
}

void *caesura_create(const char *unused) {
  (void)unused;
  State *s = calloc(1, sizeof(State));
  if (!s) return s;
  for (u32 i = 0; i < INITIALS; i++) memcpy((char *)s + INITIAL[i].place, &INITIAL[i].value, INITIAL[i].bytes);
  for (int i = 0; i < BUNDLES; i++) s->next[i / 64] |= 1ull << i % 64;
  return s;
}

void caesura_destroy(void *handle) { free(handle); }

// Runs one cycle with a register access on the command inputs.
void caesura_start_access(void *handle, u32 write, u32 address, u32 value) {
  State *s = handle;
  s->IN_cmd_write = write;
  s->IN_cmd_addr = address;
  s->IN_cmd_data = value;
  s->IN_cmd_valid = 1;
  host_acted(s);
  cycle(s);
  s->IN_cmd_valid = 0;
  host_acted(s);
}

// Sets the random stalls of the DRAM.
void caesura_stall(void *handle, u32 rate, u32 seed) {
  State *s = handle;
  s->IN_stall_rate = rate;
  s->IN_stall_seed = seed;
  host_acted(s);
}

#ifdef IN_fault_kind
// Sets what goes wrong in the DRAM.
void caesura_fault(void *handle, u32 kind, u32 base, u32 last) {
  State *s = handle;
  s->IN_fault_kind = kind;
  s->IN_fault_base = base;
  s->IN_fault_last = last;
  host_acted(s);
}
#endif

#ifdef IN_dram_latency
// Sets the timing of the DRAM; the bandwidth in percent of a beat per cycle.
void caesura_dram_timing(void *handle, u32 latency, u32 row_miss, u32 bandwidth) {
  State *s = handle;
  s->IN_dram_latency = latency;
  s->IN_dram_row_miss = row_miss;
  s->IN_dram_bandwidth = bandwidth;
  host_acted(s);
}
#endif

// Runs up to `limit` cycles, ending after the first in which the watched output was high. Returns 2 * cycles, plus
// one if it was high. The host may have changed the DRAM before.
u64 caesura_run(void *handle, u64 limit, int until) {
  State *s = handle;
  host_acted(s);
  for (u64 ran = 1; ran <= limit; ran++) {
    cycle(s);
    if ((until == IRQ && s->o_irq) || (until == RESPONSE && s->o_rsp_valid)) return 2 * ran + 1;
  }
  return 2 * limit;
}

// Outputs as they are now: data in the lower half, error in bit 32, interrupt line in bit 33.
u64 caesura_outputs(void *handle) {
  State *s = handle;
  settle(s);
  return s->o_rsp_data | (u64)s->o_rsp_error << 32 | (u64)s->o_irq << 33;
}

// The DRAM as bytes.
void *caesura_memory(void *handle) { return ((State *)handle)->HOST_MEMORY; }

// A line with the module of every bundle.
const char *caesura_bundle_modules(void) { return BUNDLE_MODULES; }

// A line "<bits> <name>" for every register.
const char *caesura_register_names(void) { return REGISTER_NAMES; }

// The registers in that order, each in as many 64-bit words as it needs.
void caesura_registers(void *handle, u64 *out) {
  memset(out, 0, REGISTER_WORDS * sizeof(u64));
  for (const RegisterPart *part = PARTS; part < PARTS + PART_COUNT; part++) {
    u64 value = 0;
    memcpy(&value, (char *)handle + part->place, part->bytes);
    put(out + part->word, part->low, part->width, value);
  }
}
