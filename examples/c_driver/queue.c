/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#define RESET_POLLS 100000

static uint32_t get(struct caesura_device *device, uint32_t address) {
    return device->bus.read_register(device->bus.context, address);
}

static void put(struct caesura_device *device, uint32_t address, uint32_t value) {
    device->bus.write_register(device->bus.context, address, value);
}

enum caesura_error caesura_queue_start(struct caesura_device *device, uint32_t e) {
    struct caesura_queue *queue = &device->queues[e];
    const uint32_t all = CAESURA_E_IRQ_STATUS_COMPLETION_MASK | CAESURA_E_IRQ_STATUS_FAULT_MASK;
    put(device, CAESURA_E_CONTROL(e), CAESURA_E_CONTROL_RESET_MASK);
    for (int polls = 0; (get(device, CAESURA_E_STATUS(e)) & CAESURA_E_STATUS_STATE_MASK) != CAESURA_ENGINE_STATE_DISABLED;)
        if (++polls == RESET_POLLS) return CAESURA_TIMED_OUT;
    put(device, CAESURA_E_RING_BASE(e), (uint32_t)queue->ring);
    put(device, CAESURA_E_RING_SIZE(e), CAESURA_RING_LOG2);
    put(device, CAESURA_E_CPL_BASE(e), (uint32_t)queue->completions);
    put(device, CAESURA_E_CPL_SIZE(e), CAESURA_RING_LOG2);
    queue->pushed = queue->retired = get(device, CAESURA_E_RING_HEAD(e));
    put(device, CAESURA_E_RING_TAIL(e), queue->pushed);
    put(device, CAESURA_E_CPL_HEAD(e), get(device, CAESURA_E_CPL_TAIL(e)));
    put(device, CAESURA_E_IRQ_STATUS(e), all);
    put(device, CAESURA_E_IRQ_ENABLE(e), all);
    put(device, CAESURA_E_CONTROL(e), CAESURA_E_CONTROL_ENABLE_MASK);
    return CAESURA_OK;
}

int caesura_queue_full(const struct caesura_queue *queue) {
    return queue->pushed - queue->retired == CAESURA_RING_ENTRIES;
}

void caesura_queue_push(struct caesura_device *device, uint32_t e, struct caesura_job *job) {
    struct caesura_queue *queue = &device->queues[e];
    uint64_t slot = queue->pushed % CAESURA_RING_ENTRIES;
    if (queue->pushed % (CAESURA_RING_ENTRIES / 2) == CAESURA_RING_ENTRIES / 2 - 1)
        job->flags |= CAESURA_JOB_FLAG_INTERRUPT; /* so that a full ring is noticed while the engine has work */
    device->bus.write_memory(device->bus.context, queue->ring + slot * sizeof *job, job, sizeof *job);
    queue->pushed++;
}

void caesura_queue_doorbell(struct caesura_device *device, uint32_t e) {
    put(device, CAESURA_E_RING_TAIL(e), device->queues[e].pushed);
}

static enum caesura_error faulted(struct caesura_device *device, uint32_t e) {
    uint32_t code = get(device, CAESURA_E_FAULT_CODE(e));
    device->fault.engine = e;
    device->fault.code = (code & CAESURA_E_FAULT_CODE_CODE_MASK) >> CAESURA_E_FAULT_CODE_CODE_SHIFT;
    device->fault.unit = (code & CAESURA_E_FAULT_CODE_UNIT_MASK) >> CAESURA_E_FAULT_CODE_UNIT_SHIFT;
    device->fault.job = get(device, CAESURA_E_FAULT_JOB(e));
    device->fault.pc = get(device, CAESURA_E_FAULT_PC(e));
    device->fault.address = get(device, CAESURA_E_FAULT_ADDR(e));
    return CAESURA_FAULTED;
}

enum caesura_error caesura_queue_serve(struct caesura_device *device) {
    uint32_t pending = get(device, CAESURA_IRQ);
    for (uint32_t e = 0; e < device->engines; e++) {
        struct caesura_queue *queue = &device->queues[e];
        if (!(pending >> e & 1u)) continue;
        uint32_t why = get(device, CAESURA_E_IRQ_STATUS(e));
        put(device, CAESURA_E_IRQ_STATUS(e), why);
        if (why & CAESURA_E_IRQ_STATUS_FAULT_MASK) return faulted(device, e);
        queue->retired = get(device, CAESURA_E_CPL_TAIL(e));
        put(device, CAESURA_E_CPL_HEAD(e), queue->retired);
    }
    return CAESURA_OK;
}
