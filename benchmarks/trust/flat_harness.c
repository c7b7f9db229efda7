/* SPDX-License-Identifier: Apache-2.0
 * Runs the driver in C on files from standard input, over a device that is not there: it remembers what the driver gives
 * it, and says whenever that is anything but the model's own. Files, scratch memory and arrays end where memory ends, so
 * that whoever reads or writes behind them dies; a sanitizer, if there is one, sees the rest.
 *
 * A request: what register PARAMS reads, the size of a file, the file. An answer, one line: the error of the load, that
 * of the inference, that of an inference of the first file behind it, and in words what was wrong with the file; or `!`
 * and what the driver did that it must not do. */
#define _DEFAULT_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "caesura.h"
#include "driver.h"

#define DRAM (1u << 20)
#define RING_BYTES (64u * sizeof(struct caesura_job))
#define UNKNOWN_OPCODE 0xEE
#define ENGINES 2u

enum { OPENING, LOADING, RUNNING };

static struct {
    uint8_t dram[DRAM];
    uint32_t params, rings[ENGINES], tails[ENGINES], heads[ENGINES], pending[ENGINES], fault[ENGINES];
    int phase, writes;
    uint64_t written[4][2]; /* first byte and end, of a load */
    uint64_t before;        /* where free memory began */
    const struct caesura_model *model;
    struct caesura_flat_header header;
    char wrong[200];
} soc;

static struct caesura_device device;

static void wrong(const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (!soc.wrong[0]) vsnprintf(soc.wrong, sizeof soc.wrong, format, values);
    va_end(values);
}

/* -- memory that ends where it ends ---------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__)
static void *guarded(size_t size) { return malloc(size); }
static void release(void *start, size_t size) { (void)size, free(start); }
#else
static size_t pages(size_t size) { return (size + 4095) / 4096 * 4096; }
static size_t room(size_t size) { return (size + 7) / 8 * 8; } /* what begins at a multiple of 8 */
static void *guarded(size_t size) {
    size_t whole = pages(room(size));
    uint8_t *at = mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + whole, 4096, PROT_NONE)) exit(3);
    return at + whole - room(size);
}
static void release(void *start, size_t size) {
    munmap((uint8_t *)start + room(size) - pages(room(size)), pages(room(size)) + 4096);
}
#endif

/* -- the device ------------------------------------------------------------------------------------------------ */

static uint32_t engine_of(uint32_t address) {
    uint32_t engine = (address - CAESURA_ENGINE(0)) / 0x1000u;
    if (address < CAESURA_ENGINE(0) || engine >= ENGINES) wrong("register %#x is not there", address);
    return engine % ENGINES;
}

static uint32_t read_register(void *context, uint32_t address) {
    (void)context;
    if (address == CAESURA_ID) return CAESURA_ID_VALUE;
    if (address == CAESURA_VERSION) return CAESURA_VERSION_VALUE;
    if (address == CAESURA_PARAMS) return soc.params;
    if (address == CAESURA_ENGINES) return ENGINES;
    if (address == CAESURA_IRQ) return (soc.pending[0] ? 1u : 0u) | (soc.pending[1] ? 2u : 0u);
    if (address >= CAESURA_EVENT(0) && address < CAESURA_EVENT(64) && address % 4 == 0) return address * 2654435761u;
    uint32_t e = engine_of(address), at = address - CAESURA_E_CONTROL(e);
    if (at == CAESURA_E_STATUS(0) - CAESURA_ENGINE(0)) return CAESURA_ENGINE_STATE_DISABLED;
    if (at == CAESURA_E_RING_HEAD(0) - CAESURA_ENGINE(0)) return soc.heads[e];
    if (at == CAESURA_E_CPL_TAIL(0) - CAESURA_ENGINE(0)) return soc.heads[e];
    if (at == CAESURA_E_IRQ_STATUS(0) - CAESURA_ENGINE(0)) return soc.pending[e];
    if (at == CAESURA_E_FAULT_CODE(0) - CAESURA_ENGINE(0)) return soc.fault[e];
    if (at < CAESURA_E_FAULT_CODE(0) - CAESURA_ENGINE(0) || at > CAESURA_E_FAULT_ADDR(0) - CAESURA_ENGINE(0))
        wrong("register %#x was read", address);
    return 0;
}

static void write_register(void *context, uint32_t address, uint32_t value) {
    uint32_t e = engine_of(address), at = address - CAESURA_E_CONTROL(e);
    (void)context;
    if (at == 0 && value & CAESURA_E_CONTROL_RESET_MASK) soc.tails[e] = soc.heads[e], soc.pending[e] = soc.fault[e] = 0;
    if (at == CAESURA_E_RING_BASE(0) - CAESURA_ENGINE(0)) soc.rings[e] = value;
    if (at == CAESURA_E_RING_TAIL(0) - CAESURA_ENGINE(0)) soc.tails[e] = value;
    if (at == CAESURA_E_IRQ_STATUS(0) - CAESURA_ENGINE(0)) soc.pending[e] &= ~value;
}

/* Whether bytes `at` to `end` lie in segments `first` to `last` of the model that runs. */
static int in_segments(uint64_t at, uint64_t end, int first, int last) {
    const uint32_t *sizes = &soc.header.size0;
    for (int i = first; i <= last; i++)
        if (at >= soc.model->base[i] && end <= soc.model->base[i] + sizes[i]) return 1;
    return 0;
}

static int in_rings(uint64_t at, uint64_t end) {
    for (uint32_t e = 0; e < ENGINES; e++)
        if (at >= soc.rings[e] && end <= soc.rings[e] + RING_BYTES) return 1;
    return 0;
}

static int there(uint64_t at, size_t size) { return size <= DRAM && at <= DRAM - size; }

static void read_memory(void *context, uint64_t at, void *data, size_t size) {
    (void)context;
    if (!there(at, size) || soc.phase != RUNNING || !in_segments(at, at + size, 2, 5))
        wrong("%zu bytes from %#llx on are read, which are no tensors of the model", size, (unsigned long long)at);
    else
        memcpy(data, soc.dram + at, size);
}

static void write_memory(void *context, uint64_t at, const void *data, size_t size) {
    int mine = soc.phase == LOADING ? soc.writes < 4
                                    : soc.phase == RUNNING && (in_segments(at, at + size, 2, 5) || in_rings(at, at + size));
    (void)context;
    if (!there(at, size) || !mine) {
        wrong("%zu bytes from %#llx on are written, which are not the model's", size, (unsigned long long)at);
        return;
    }
    if (soc.phase == LOADING) soc.written[soc.writes][0] = at, soc.written[soc.writes++][1] = at + size;
    memcpy(soc.dram + at, data, size);
}

/* What a descriptor lets the hardware reach, and what it makes it wait for. */
static void look_at(const struct caesura_job *job) {
    const uint64_t bases[] = {job->base0, job->base1, job->base2, job->base3, job->base4, job->base5, job->base6, job->base7};
    const uint32_t limits[] = {job->limit0, job->limit1, job->limit2, job->limit3,
                               job->limit4, job->limit5, job->limit6, job->limit7};
    const struct caesura_flat_header *h = &soc.header;
    for (int i = 0; i < 6; i++)
        if (limits[i] && !in_segments(bases[i], bases[i] + limits[i], i, i))
            wrong("a job may use %u bytes from %#llx on as segment %d", limits[i], (unsigned long long)bases[i], i);
    for (int i = 6; i < 8; i++)
        if (bases[i] + limits[i] > h->lv2_bytes) wrong("a job may use byte %u of LV2", h->lv2_bytes);
    if (job->magic != CAESURA_JOB_MAGIC || job->flags & ~31u) wrong("a descriptor with flags %#x", job->flags);
    if ((uint64_t)job->body_pc * 64 + 64 > h->code_bytes) wrong("a body at PC %u", job->body_pc);
    if (job->flags & 1 && (uint64_t)job->prologue_pc * 64 + 64 > h->code_bytes) wrong("a prologue at PC %u", job->prologue_pc);
    if ((job->flags & 4 && job->wait0_id >= h->events) || (job->flags & 8 && job->wait1_id >= h->events) ||
        (job->flags & 16 && job->signal_id >= h->events))
        wrong("a job names an event that is not the model's");
}

/* The next job of an engine; one whose first instruction is unknown stops it. */
static void retire(uint32_t e) {
    struct caesura_job job;
    memcpy(&job, soc.dram + soc.rings[e] + soc.heads[e] % 64 * sizeof job, sizeof job);
    look_at(&job);
    if (!soc.wrong[0] && soc.dram[job.base0 + (uint64_t)job.body_pc * 64] == UNKNOWN_OPCODE) {
        soc.pending[e] |= CAESURA_E_IRQ_STATUS_FAULT_MASK;
        soc.fault[e] = CAESURA_FAULT_ILLEGAL;
        return;
    }
    soc.heads[e]++;
    if (job.flags & CAESURA_JOB_FLAG_INTERRUPT) soc.pending[e] |= CAESURA_E_IRQ_STATUS_COMPLETION_MASK;
}

static int wait_for_interrupt(void *context) {
    (void)context;
    for (uint32_t e = 0; e < ENGINES; e++) {
        if (soc.tails[e] - soc.heads[e] > 64) wrong("%u jobs in a ring of 64", soc.tails[e] - soc.heads[e]);
        while (soc.heads[e] != soc.tails[e] && !soc.pending[e] && !soc.wrong[0]) retire(e);
    }
    return !soc.wrong[0] && (soc.pending[0] || soc.pending[1]);
}

/* -- a file ---------------------------------------------------------------------------------------------------- */

static const uint32_t BYTES[] = {1, 1, 4, 4, 8}; /* of an element, by number of the type */

/* An array that ends where memory ends; of numbers that are hard to convert. */
static void *array(uint64_t size, uint32_t seed) {
    static const float odd[] = {0.0f, -0.0f, 1e-45f, 1e38f, -1e38f, 0.5f, 4194304.5f};
    unsigned char *data = guarded(size);
    for (uint64_t i = 0; i < size; i++) data[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
    for (uint64_t i = 0; i + 4 <= size; i += 12) memcpy(data + i, &odd[i / 12 % 7], 4);
    return data;
}

static void check_load(uint64_t end) {
    const uint32_t *sizes = &soc.header.size0;
    for (int i = 0; i < 6; i++) {
        uint64_t at = soc.model->base[i];
        if (sizes[i] && (at < soc.before || at + sizes[i] > end)) wrong("segment %d is not in free memory", i);
        for (int j = 0; j < i; j++)
            if (sizes[i] && sizes[j] && at < soc.model->base[j] + sizes[j] && soc.model->base[j] < at + sizes[i])
                wrong("segments %d and %d overlap", j, i);
    }
    for (int i = 0; i < soc.writes; i++)
        if (soc.written[i][0] != soc.written[i][1] && !in_segments(soc.written[i][0], soc.written[i][1], 0, 1))
            wrong("a load writes from %#llx on", (unsigned long long)soc.written[i][0]);
}

/* One inference with arrays of the sizes that the file says. */
static int infer(const struct caesura_model *model) {
    const struct caesura_flat_port *ports = (const void *)(model->file + soc.header.port_table);
    uint32_t count = soc.header.inputs + soc.header.outputs;
    void **arrays = guarded((count + 1) * sizeof *arrays);
    size_t *sizes = guarded((count + 1) * sizeof *sizes);
    for (uint32_t i = 0; i < count; i++) {
        if (ports[i].given > 4) wrong("port %u is of no type", i);
        sizes[i] = (size_t)ports[i].elements * BYTES[ports[i].given % 5];
        arrays[i] = array(sizes[i], i);
        if (!caesura_port_name(model, i)) wrong("port %u has no name", i);
        else if (strlen(caesura_port_name(model, i)) >= soc.header.bytes) wrong("a name as long as the file");
    }
    if (caesura_port_name(model, count)) wrong("a name of no port");
    soc.phase = RUNNING;
    int error = caesura_run(&device, model, (const void *const *)arrays, arrays + soc.header.inputs);
    soc.phase = OPENING;
    for (uint32_t i = 0; i < count; i++) release(arrays[i], sizes[i]);
    release(sizes, (count + 1) * sizeof *sizes);
    release(arrays, (count + 1) * sizeof *arrays);
    return error;
}

/* Load and run a file; the memory that it took is free again behind it. */
static void try_file(const unsigned char *file, size_t size, int *load, int *run) {
    struct caesura_model model;
    size_t code = 0;
    memset(&model, 0xA5, sizeof model);
    if (size >= sizeof soc.header) {
        memcpy(&soc.header, file, sizeof soc.header);
        code = soc.header.code_bytes < size ? soc.header.code_bytes : size;
    }
    void *scratch = guarded(code);
    soc.model = &model, soc.before = device.memory, soc.writes = 0, soc.phase = LOADING;
    *load = caesura_load(&device, &model, file, size, scratch, code);
    soc.phase = OPENING;
    release(scratch, code);
    if (*load && (soc.writes || device.memory != soc.before)) wrong("a load that failed has taken something");
    if (!*load) check_load(device.memory);
    *run = *load || soc.wrong[0] ? -1 : infer(&model);
    device.memory = soc.before;
}

int main(void) {
    struct caesura_bus bus = {NULL, read_register, write_register, read_memory, write_memory, wait_for_interrupt};
    unsigned char *first = NULL;
    uint32_t request[2], first_size = 0, first_params = 0;
    if (caesura_open(&device, &bus, 0, DRAM)) return 2;
    while (fread(request, sizeof request, 1, stdin) == 1) {
        unsigned char *file = guarded(request[1]);
        int load, run, again = -1, ignored;
        if (request[1] && fread(file, request[1], 1, stdin) != 1) return 2;
        soc.params = request[0];
        try_file(file, request[1], &load, &run);
        const char *problem = device.problem ? device.problem : "";
        if (!first) {
            first = file, first_size = request[1], first_params = request[0];
        } else {
            release(file, request[1]);
            soc.params = first_params;
            if (run > 0 && !soc.wrong[0]) try_file(first, first_size, &ignored, &again);
        }
        if (soc.wrong[0]) printf("!%s\n", soc.wrong);
        else printf("%d %d %d %s\n", load, run, again, problem);
        fflush(stdout);
        soc.wrong[0] = 0;
    }
    return 0;
}
