/* SPDX-License-Identifier: Apache-2.0
 * Tensors as the user sees them and as they are stored. */
#ifndef CAESURA_PORTS_H
#define CAESURA_PORTS_H

#include "caesura.h"
#include "driver.h"

/* What is wrong with a port: elements that its segment of `size` bytes does not hold, types that do not go together.
 * NULL if nothing is. */
const char *caesura_port_problem(const struct caesura_flat_port *port, uint32_t size);

/* Quantise, transpose and write an input; read, transpose and dequantise an output. */
void caesura_store(struct caesura_device *device, const struct caesura_flat_port *port, uint64_t base,
                   const void *values);
void caesura_fetch(struct caesura_device *device, const struct caesura_flat_port *port, uint64_t base, void *values);

#endif
