/* SPDX-License-Identifier: Apache-2.0
 * The rings of one engine. */
#ifndef CAESURA_QUEUE_H
#define CAESURA_QUEUE_H

#include "caesura.h"
#include "driver.h"

#define CAESURA_RING_ENTRIES (1u << CAESURA_RING_LOG2)

/* Reset an engine and give it empty rings. */
enum caesura_error caesura_queue_start(struct caesura_device *device, uint32_t engine);
int caesura_queue_full(const struct caesura_queue *queue);
/* Write a descriptor; the doorbell announces what was written. */
void caesura_queue_push(struct caesura_device *device, uint32_t engine, struct caesura_job *job);
void caesura_queue_doorbell(struct caesura_device *device, uint32_t engine);
/* Take completions of all engines, after an interrupt. */
enum caesura_error caesura_queue_serve(struct caesura_device *device);

#endif
