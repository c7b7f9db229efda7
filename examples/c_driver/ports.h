/* SPDX-License-Identifier: Apache-2.0
 * Tensors as the user sees them and as they are stored. */
#ifndef CAESURA_PORTS_H
#define CAESURA_PORTS_H

#include "caesura.h"
#include "driver.h"

/* Whether a port describes elements that its segment of `size` bytes holds, and types that go together. */
int caesura_port_sound(const struct caesura_flat_port *port, uint32_t size);

/* Quantise, transpose and write an input; read, transpose and dequantise an output. */
void caesura_store(struct caesura_device *device, const struct caesura_flat_port *port, uint64_t base,
                   const void *values);
void caesura_fetch(struct caesura_device *device, const struct caesura_flat_port *port, uint64_t base, void *values);

#endif
