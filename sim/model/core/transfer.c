/* Commands of the units that reach DRAM, and queues of them: see transfer.py. */
#include "core.h"
#include <stdlib.h>

/* A unit, which the core keeps. */
void *new_unit(core_t *core, i64 size) {
    void *unit = calloc(1, size);
    append(&core->units, (i64)(uintptr_t)unit);
    return unit;
}

/* A place for a command, not that of the latest, of which something may still be asked; 0 if there is none. */
transfer_t *place_for(transfer_t *places, const transfer_t *latest, const given_t *given) {
    transfer_t *place = places;
    while (place < places + PLACES && (place->used || place == latest))
        place++;
    if (place == places + PLACES)
        return 0;
    *place = (transfer_t){.given = *given, .used = 1, .left = given->count};
    return place;
}

/* Offset, beats, pause and place in LV2 of a burst. */
const i64 *burst_of(const transfer_t *transfer, i64 number) {
    return &transfer->given.bursts[4 * (number % transfer->given.part)];
}

void push(line_t *line, transfer_t *transfer) { line->items[(line->head + line->count++) % PLACES] = transfer; }

transfer_t *pop(line_t *line) {
    transfer_t *transfer = line->items[line->head];
    line->head = (line->head + 1) % PLACES;
    line->count--;
    return transfer;
}
