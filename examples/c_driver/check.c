/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "caesura.h"
#include "driver.h"
#include "ports.h"

#define INSTRUCTION 64u /* bytes */
#define EVENTS 64u      /* registers that count them */

/* Whether `count` records of `size` bytes from byte `at` on lie in the file. Neither product nor sum can overflow. */
static int within(const struct caesura_flat_header *h, uint64_t at, uint64_t count, uint64_t size) {
    return at % 8 == 0 && at + count * size <= h->bytes;
}

static const char *header_problem(const struct caesura_flat_header *h, size_t size) {
    if (size < sizeof *h) return "it is shorter than a header";
    if (h->magic != CAESURA_FLAT_MAGIC) return "magic";
    if (h->version != CAESURA_FLAT_VERSION) return "version";
    if (h->bytes != size) return "bytes: it has another size";
    if (h->engines > CAESURA_MAX_ENGINES) return "engines: more than a device can have";
    if (h->events > EVENTS) return "events: more than a device can have";
    if (!within(h, h->job_table, h->jobs, sizeof(struct caesura_job))) return "job_table leaves the file";
    if (!within(h, h->port_table, (uint64_t)h->inputs + h->outputs, sizeof(struct caesura_flat_port)))
        return "port_table leaves the file";
    if (!within(h, h->relocation_table, h->relocations, sizeof(struct caesura_flat_relocation)))
        return "relocation_table leaves the file";
    if (!within(h, h->code, h->code_bytes, 1)) return "code leaves the file";
    if (!within(h, h->weights, h->weight_bytes, 1)) return "weights leave the file";
    if (h->code_bytes % INSTRUCTION) return "code_bytes: half an instruction";
    if (h->code_bytes > h->size0) return "code_bytes: more than segment 0 has";
    if (h->weight_bytes > h->size1) return "weight_bytes: more than segment 1 has";
    if ((uint64_t)h->lv2_at6 + h->size6 > h->lv2_bytes) return "segment 6 leaves the model's part of LV2";
    if ((uint64_t)h->lv2_at7 + h->size7 > h->lv2_bytes) return "segment 7 leaves the model's part of LV2";
    if (((const unsigned char *)h)[h->bytes - 1]) return "the last name does not end";
    return NULL;
}

/* Of job `number`; `before`: how many the table has had for each engine. */
static const char *job_problem(const struct caesura_flat_header *h, const struct caesura_job *job, uint32_t number,
                               uint32_t *before) {
    const uint32_t limits[] = {job->limit0, job->limit1, job->limit2, job->limit3,
                               job->limit4, job->limit5, job->limit6, job->limit7};
    const uint32_t *sizes = &h->size0, instructions = h->code_bytes / INSTRUCTION, engine = job->tag >> 16;
    const uint16_t known = CAESURA_JOB_FLAG_PROLOGUE | CAESURA_JOB_FLAG_INTERRUPT | CAESURA_JOB_FLAG_WAIT0 |
                           CAESURA_JOB_FLAG_WAIT1 | CAESURA_JOB_FLAG_SIGNAL;
    if (job->magic != CAESURA_JOB_MAGIC) return "job: magic";
    if (job->flags & ~known) return "job: flags that no file has";
    if (job->job_id != number) return "job: job_id is not its number";
    if (engine >= h->engines) return "job: an engine beyond those of the header";
    if (job->body_pc >= instructions) return "job: body_pc leaves the code";
    if (job->flags & CAESURA_JOB_FLAG_PROLOGUE && job->prologue_pc >= instructions)
        return "job: prologue_pc leaves the code";
    if (job->window_after > before[engine]++) return "job: window_after is before the first job";
    if (job->flags & CAESURA_JOB_FLAG_WAIT0 && job->wait0_id >= h->events) return "job: wait0_id is no event";
    if (job->flags & CAESURA_JOB_FLAG_WAIT1 && job->wait1_id >= h->events) return "job: wait1_id is no event";
    if (job->flags & CAESURA_JOB_FLAG_SIGNAL && job->signal_id >= h->events) return "job: signal_id is no event";
    for (int i = 0; i < 8; i++)
        if (limits[i] > sizes[i]) return "job: a limit is beyond the size of its segment";
    return NULL;
}

static const char *relocation_problem(const struct caesura_flat_header *h,
                                      const struct caesura_flat_relocation *entry) {
    if ((uint64_t)entry->byte + 8 > h->code_bytes) return "relocation: byte leaves the code";
    if (entry->byte % 4) return "relocation: byte is within a word";
    if (entry->low > 31) return "relocation: low is beyond the first word";
    if (!entry->width || entry->width > 32) return "relocation: width";
    if (entry->segment > 7) return "relocation: segment";
    return NULL;
}

static const char *port_problem(const struct caesura_flat_header *h, const struct caesura_flat_port *port) {
    const uint32_t *sizes = &h->size0;
    if (port->name >= h->bytes) return "port: name leaves the file";
    if (port->segment < 2 || port->segment > 5) return "port: segment holds no tensors";
    return caesura_port_problem(port, sizes[port->segment]);
}

const char *caesura_flat_problem(const void *file, size_t size) {
    const struct caesura_flat_header *h = file;
    const unsigned char *bytes = file;
    const char *problem = header_problem(h, size);
    uint32_t before[CAESURA_MAX_ENGINES] = {0};
    if (problem) return problem;
    const struct caesura_job *job = (const void *)(bytes + h->job_table);
    const struct caesura_flat_relocation *entry = (const void *)(bytes + h->relocation_table);
    const struct caesura_flat_port *port = (const void *)(bytes + h->port_table);
    for (uint32_t i = 0; i < h->jobs && !problem; i++) problem = job_problem(h, &job[i], i, before);
    for (uint32_t i = 0; i < h->relocations && !problem; i++) problem = relocation_problem(h, &entry[i]);
    for (uint64_t i = 0; i < (uint64_t)h->inputs + h->outputs && !problem; i++) problem = port_problem(h, &port[i]);
    return problem;
}
