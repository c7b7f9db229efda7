/* SPDX-License-Identifier: Apache-2.0
 * A small driver for Caesura in C99: it runs models in flat form (caesura export), one at a time.
 * It knows registers, descriptors and the flat form from docs/caesura.h alone, and the hardware through five functions. */
#ifndef CAESURA_DRIVER_H
#define CAESURA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#define CAESURA_MAX_ENGINES 16
#define CAESURA_RING_LOG2 6

/* How to reach a device. On an FPGA: a mapped register window, memory that the device reads, a file to poll. */
struct caesura_bus {
    void *context;
    uint32_t (*read_register)(void *context, uint32_t address);
    void (*write_register)(void *context, uint32_t address, uint32_t value);
    void (*read_memory)(void *context, uint64_t address, void *data, size_t size);
    void (*write_memory)(void *context, uint64_t address, const void *data, size_t size);
    int (*wait)(void *context); /* until the interrupt line is high; 0: it has given up */
};

enum caesura_error {
    CAESURA_OK = 0,
    CAESURA_NO_DEVICE,  /* ID or VERSION read something else */
    CAESURA_BAD_IMAGE,  /* not a flat image, or a damaged one: caesura_device.problem */
    CAESURA_OTHER_PARAMS, /* compiled for other hardware */
    CAESURA_NO_MEMORY,
    CAESURA_FAULTED, /* a job failed: caesura_device.fault */
    CAESURA_TIMED_OUT,
    CAESURA_BAD_ARGUMENT
};

struct caesura_fault_record {
    uint32_t engine, job, code, unit, pc, address;
};

struct caesura_queue {
    uint64_t ring, completions;
    uint32_t pushed, retired;
};

struct caesura_device {
    struct caesura_bus bus;
    uint64_t memory, end; /* what is left of the device's memory */
    uint32_t engines;
    struct caesura_queue queues[CAESURA_MAX_ENGINES];
    struct caesura_fault_record fault;
    const char *problem; /* what was wrong with the newest file, in words; NULL if nothing was */
};

struct caesura_model {
    const unsigned char *file; /* as given to caesura_load: it must stay, and not change */
    uint64_t base[8];
};

/* A device whose memory from `memory` on, `size` bytes, is the driver's; it ends below 2^32. */
enum caesura_error caesura_open(struct caesura_device *device, const struct caesura_bus *bus, uint64_t memory,
                                uint64_t size);

/* A model in flat form, at a multiple of 8. `scratch`: code_bytes of its header, for the code as it is relocated. The
 * file need not be trusted: it is refused unless everything in it stays within what it says that it takes. */
enum caesura_error caesura_load(struct caesura_device *device, struct caesura_model *model, const void *file,
                                size_t size, void *scratch, size_t scratch_size);

/* One inference: an array for each input and each output, of the type and shape that the user sees (row-major). */
enum caesura_error caesura_run(struct caesura_device *device, const struct caesura_model *model,
                               const void *const *inputs, void *const *outputs);

/* Name of port `number`, inputs first; NULL if there is none. */
const char *caesura_port_name(const struct caesura_model *model, uint32_t number);

#endif
