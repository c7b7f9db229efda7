/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <string.h>

#include "caesura.h"
#include "check.h"
#include "ports.h"
#include "queue.h"

#define PAGE 4096u
#define ADDRESSES ((uint64_t)1 << 32) /* of memory, as the device counts them */

static const struct caesura_flat_header *header(const struct caesura_model *model) {
    return (const struct caesura_flat_header *)model->file;
}

static uint32_t get(struct caesura_device *device, uint32_t address) {
    return device->bus.read_register(device->bus.context, address);
}

/* Pages for `size` bytes; 0 if there are none. */
static uint64_t allocate(struct caesura_device *device, uint64_t size) {
    uint64_t at = (device->memory + PAGE - 1) / PAGE * PAGE; /* at most 2^32, and `size` is less */
    if (at + size > device->end) return 0;
    device->memory = at + size;
    return at;
}

enum caesura_error caesura_open(struct caesura_device *device, const struct caesura_bus *bus, uint64_t memory,
                                uint64_t size) {
    memset(device, 0, sizeof *device);
    if (memory > ADDRESSES || size > ADDRESSES - memory) return CAESURA_BAD_ARGUMENT;
    device->bus = *bus;
    device->memory = memory ? memory : PAGE; /* address 0 stands for no memory */
    device->end = memory + size;
    if (get(device, CAESURA_ID) != CAESURA_ID_VALUE || get(device, CAESURA_VERSION) != CAESURA_VERSION_VALUE)
        return CAESURA_NO_DEVICE;
    device->engines = get(device, CAESURA_ENGINES);
    if (device->engines > CAESURA_MAX_ENGINES) return CAESURA_NO_DEVICE;
    for (uint32_t e = 0; e < device->engines; e++) {
        struct caesura_queue *queue = &device->queues[e];
        queue->ring = allocate(device, CAESURA_RING_ENTRIES * sizeof(struct caesura_job));
        queue->completions = allocate(device, CAESURA_RING_ENTRIES * sizeof(struct caesura_completion));
        if (!queue->ring || !queue->completions) return CAESURA_NO_MEMORY;
        enum caesura_error error = caesura_queue_start(device, e);
        if (error) return error;
    }
    return CAESURA_OK;
}

/* Add the first bytes of segments to the fields of instructions that name addresses. */
static void relocate(const struct caesura_model *model, unsigned char *code) {
    const struct caesura_flat_header *h = header(model);
    const struct caesura_flat_relocation *entry = (const void *)(model->file + h->relocation_table);
    for (uint32_t i = 0; i < h->relocations; i++) {
        uint64_t word, mask = ((uint64_t)1 << entry[i].width) - 1;
        memcpy(&word, code + entry[i].byte, sizeof word);
        uint64_t field = ((word >> entry[i].low) + model->base[entry[i].segment]) & mask;
        word = (word & ~(mask << entry[i].low)) | field << entry[i].low;
        memcpy(code + entry[i].byte, &word, sizeof word);
    }
}

enum caesura_error caesura_load(struct caesura_device *device, struct caesura_model *model, const void *file,
                                size_t size, void *scratch, size_t scratch_size) {
    const struct caesura_flat_header *h = file;
    device->problem = NULL;
    if ((uintptr_t)file % 8) return CAESURA_BAD_ARGUMENT;
    if ((device->problem = caesura_flat_problem(file, size))) return CAESURA_BAD_IMAGE;
    if (h->params != get(device, CAESURA_PARAMS) || h->engines > device->engines) return CAESURA_OTHER_PARAMS;
    if (scratch_size < h->code_bytes) return CAESURA_BAD_ARGUMENT;
    model->file = file;
    const uint64_t before = device->memory;
    const uint32_t *sizes = &h->size0;
    for (uint32_t i = 0; i < 6; i++) {
        model->base[i] = sizes[i] ? allocate(device, sizes[i]) : 0;
        if (sizes[i] && !model->base[i]) {
            device->memory = before; /* a load that fails takes nothing */
            return CAESURA_NO_MEMORY;
        }
    }
    model->base[6] = h->lv2_at6; /* all of LV2 is this model's while it runs */
    model->base[7] = h->lv2_at7;
    memcpy(scratch, model->file + h->code, h->code_bytes);
    relocate(model, scratch);
    device->bus.write_memory(device->bus.context, model->base[0], scratch, h->code_bytes);
    device->bus.write_memory(device->bus.context, model->base[1], model->file + h->weights, h->weight_bytes);
    return CAESURA_OK;
}

/* The descriptor of a job with addresses, and events that count from `counted`. */
static void complete(const struct caesura_model *model, struct caesura_job *job, const uint32_t *counted) {
    uint64_t *base[] = {&job->base0, &job->base1, &job->base2, &job->base3,
                        &job->base4, &job->base5, &job->base6, &job->base7};
    for (int i = 0; i < 8; i++) *base[i] = model->base[i];
    if (job->flags & CAESURA_JOB_FLAG_WAIT0) job->wait0_value += counted[job->wait0_id];
    if (job->flags & CAESURA_JOB_FLAG_WAIT1) job->wait1_value += counted[job->wait1_id];
}

static enum caesura_error served(struct caesura_device *device) {
    enum caesura_error error = device->bus.wait(device->bus.context) ? caesura_queue_serve(device) : CAESURA_TIMED_OUT;
    if (error) /* jobs that are still queued belong to an inference that has failed */
        for (uint32_t e = 0; e < device->engines; e++) caesura_queue_start(device, e);
    return error;
}

static enum caesura_error run_jobs(struct caesura_device *device, const struct caesura_model *model) {
    const struct caesura_flat_header *h = header(model);
    enum caesura_error error = CAESURA_OK;
    uint32_t counted[64] = {0};
    for (uint32_t i = 0; i < h->events; i++) counted[i] = get(device, CAESURA_EVENT(i));
    for (uint32_t i = 0; i < h->jobs; i++) {
        struct caesura_job job;
        memcpy(&job, model->file + h->job_table + i * sizeof job, sizeof job);
        uint32_t e = job.tag >> 16;
        while (caesura_queue_full(&device->queues[e]))
            if ((error = served(device))) return error;
        complete(model, &job, counted);
        caesura_queue_push(device, e, &job);
        caesura_queue_doorbell(device, e);
    }
    for (uint32_t e = 0; e < device->engines; e++)
        while (device->queues[e].pushed != device->queues[e].retired)
            if ((error = served(device))) return error;
    return CAESURA_OK;
}

static const struct caesura_flat_port *port_of(const struct caesura_model *model, uint32_t number) {
    return (const struct caesura_flat_port *)(const void *)(model->file + header(model)->port_table) + number;
}

enum caesura_error caesura_run(struct caesura_device *device, const struct caesura_model *model,
                               const void *const *inputs, void *const *outputs) {
    const struct caesura_flat_header *h = header(model);
    for (uint32_t i = 0; i < h->inputs; i++) {
        const struct caesura_flat_port *port = port_of(model, i);
        caesura_store(device, port, model->base[port->segment], inputs[i]);
    }
    enum caesura_error error = run_jobs(device, model);
    for (uint32_t i = 0; i < h->outputs && !error; i++) {
        const struct caesura_flat_port *port = port_of(model, h->inputs + i);
        caesura_fetch(device, port, model->base[port->segment], outputs[i]);
    }
    return error;
}

const char *caesura_port_name(const struct caesura_model *model, uint32_t number) {
    if (number >= (uint64_t)header(model)->inputs + header(model)->outputs) return NULL;
    return (const char *)model->file + port_of(model, number)->name;
}
