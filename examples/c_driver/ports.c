/* SPDX-License-Identifier: Apache-2.0 */
#include "ports.h"

#include <float.h>
#include <string.h>

static const uint32_t SIZES[] = {1, 1, 4, 4, 8}; /* bytes of an element, by number of the type */

static float scale_of(const struct caesura_flat_port *port) {
    float scale;
    memcpy(&scale, &port->scale, sizeof scale);
    return scale;
}

static int32_t zero_point_of(const struct caesura_flat_port *port) {
    int32_t zero_point;
    memcpy(&zero_point, &port->zero_point, sizeof zero_point);
    return zero_point;
}

/* Numbers that say what stored elements stand for. Calculating with them has a result, whatever the elements are. */
static const char *quantisation_problem(const struct caesura_flat_port *port) {
    const int32_t low = port->stored == CAESURA_FLAT_INT8 ? -128 : 0, zero_point = zero_point_of(port);
    const float scale = scale_of(port);
    if (port->quantise > 1) return "port: quantise is neither 0 nor 1";
    if (!port->quantise) return port->given == port->stored ? NULL : "port: given is another type than stored";
    if (port->stored > CAESURA_FLAT_UINT8) return "port: stored is no type that can be quantised";
    if (port->given != CAESURA_FLAT_FLOAT32) return "port: given is not float32, but quantised";
    if (!(scale > 0 && scale <= FLT_MAX)) return "port: scale is no positive number";
    if (zero_point < low || zero_point > low + 255) return "port: zero_point is beyond its type";
    return NULL;
}

const char *caesura_port_problem(const struct caesura_flat_port *port, uint32_t size) {
    const uint32_t *extent = &port->extent0, *stride = &port->stride0;
    uint64_t elements = 1, last = 0;
    if (port->stored > CAESURA_FLAT_INT64) return "port: stored is no type";
    if (port->axes > CAESURA_FLAT_MOST_AXES) return "port: axes";
    for (uint32_t axis = 0; axis < port->axes; axis++) {
        if (!extent[axis]) return "port: an axis without elements";
        elements *= extent[axis]; /* less than 2^64, as both are less than 2^32 */
        if (elements > size) return "port: more elements than its segment has bytes";
    }
    for (uint32_t axis = 0; axis < port->axes; axis++) {
        last += (uint64_t)(extent[axis] - 1) * stride[axis]; /* likewise */
        if (last >= elements) return "port: strides that lead beyond its elements";
    }
    if (elements != port->elements) return "port: elements is not the product of its axes";
    if (elements * SIZES[port->stored] != port->bytes) return "port: bytes is not the size of its elements";
    if ((uint64_t)port->offset + port->bytes > size) return "port: it leaves its segment";
    return quantisation_problem(port);
}

/* Where element `index` of the user's array is stored, counted in elements. */
static uint64_t place(const struct caesura_flat_port *port, uint64_t index) {
    const uint32_t *extent = &port->extent0, *stride = &port->stride0;
    uint64_t at = 0;
    for (uint32_t axis = port->axes; axis-- > 0;) {
        at += index % extent[axis] * stride[axis];
        index /= extent[axis];
    }
    return at;
}

/* Rounded half to even, without a library: adding 1.5 * 2^23 leaves no bit behind the point. What is further out than
 * 2^22 saturates whatever it is rounded to. */
static float nearest(float value) {
    const float limit = 4194304.0f, shift = 12582912.0f;
    volatile float moved = (value < -limit ? -limit : value > limit ? limit : value) + shift;
    return moved - shift;
}

static int quantised(const struct caesura_flat_port *port, float value) {
    if (value != value) return zero_point_of(port); /* not a number */
    float low = port->stored == CAESURA_FLAT_INT8 ? -128.0f : 0.0f, high = low + 255.0f;
    float found = nearest(value / scale_of(port)) + (float)zero_point_of(port);
    return (int)(found < low ? low : found > high ? high : found);
}

void caesura_store(struct caesura_device *device, const struct caesura_flat_port *port, uint64_t base,
                   const void *values) {
    uint32_t size = SIZES[port->stored];
    for (uint64_t i = 0; i < port->elements; i++) {
        uint64_t address = base + port->offset + place(port, i) * size;
        if (port->quantise) {
            unsigned char byte = (unsigned char)quantised(port, ((const float *)values)[i]);
            device->bus.write_memory(device->bus.context, address, &byte, 1);
        } else {
            device->bus.write_memory(device->bus.context, address, (const unsigned char *)values + i * size, size);
        }
    }
}

void caesura_fetch(struct caesura_device *device, const struct caesura_flat_port *port, uint64_t base, void *values) {
    uint32_t size = SIZES[port->stored];
    for (uint64_t i = 0; i < port->elements; i++) {
        uint64_t address = base + port->offset + place(port, i) * size;
        if (port->quantise) {
            unsigned char byte;
            device->bus.read_memory(device->bus.context, address, &byte, 1);
            int stored = port->stored == CAESURA_FLAT_INT8 ? (signed char)byte : byte;
            ((float *)values)[i] = (float)(stored - zero_point_of(port)) * scale_of(port);
        } else {
            device->bus.read_memory(device->bus.context, address, (unsigned char *)values + i * size, size);
        }
    }
}
