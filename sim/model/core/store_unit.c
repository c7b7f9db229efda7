/* ST2, burst by burst: see store_unit.py. */
#include "core.h"

static transfer_t *head(const line_t *line) { return line->items[line->head]; }

static i64 *offered(store_unit_t *unit, const transfer_t *transfer) { return &unit->offered[transfer - unit->places]; }

/* Plan the announcement of the next burst. */
static void schedule(store_unit_t *unit, i64 time) {
    const params_t *p = &unit->core->params;
    if (unit->scheduled || !unit->announcing.count)
        return;
    const transfer_t *transfer = head(&unit->announcing);
    i64 beats = burst_of(transfer, transfer->next)[1];
    if ((unit->backlog && unit->backlog + beats > p->store_buffered) || unit->outstanding >= p->outstanding ||
        unit->held)
        return;
    i64 step = later(later(unit->free, transfer->begin + p->planned + p->fetched), time - 3);
    unit->free = step + beats;
    unit->scheduled = 1;
    at(unit->core, step + p->landed, ANNOUNCE, unit, unit->generation, 0);
}

static void consider(store_unit_t *unit, i64 time) {
    const params_t *p = &unit->core->params;
    while (unit->offers.count && unit->flying.count < p->in_flight) {
        const transfer_t *latest = unit->latest;
        if (latest && latest->next < latest->given.lead)
            return;
        transfer_t *transfer = pop(&unit->offers);
        i64 begin = later(*offered(unit, transfer), unit->next_accept);
        unit->next_accept = begin + p->planned - 1 + transfer->given.runs;
        unit->latest = transfer;
        transfer->begin = begin;
        push(&unit->flying, transfer);
        push(&unit->announcing, transfer);
        schedule(unit, time);
        unit->core->told.command(TAKEN, transfer->given.number, begin, 0);
    }
}

static i64 all_beats(const given_t *given) {
    i64 part = 0, rest = 0;
    for (i64 number = 0; number < given->part; number++) {
        part += given->bursts[4 * number + 1];
        rest += number < given->count % given->part ? given->bursts[4 * number + 1] : 0;
    }
    return given->count / given->part * part + rest;
}

/* What a burst is known by: its command, and the generation of the unit. */
static i64 subject_of(const store_unit_t *unit, const transfer_t *transfer) {
    return unit->generation * PLACES + (transfer - unit->places);
}

void store_announce(store_unit_t *unit, i64 time, i64 generation) {
    if (generation != unit->generation)
        return;
    transfer_t *transfer = head(&unit->announcing);
    const i64 *burst = burst_of(transfer, transfer->next);
    transfer->next++;
    unit->backlog += burst[1];
    unit->outstanding++;
    unit->scheduled = 0;
    if (transfer->next == transfer->given.count) {
        pop(&unit->announcing);
        unit->free += transfer->given.steps - all_beats(&transfer->given);
    }
    unit->held = 1;
    request_t held = {
        &unit->client, time, transfer->given.base + burst[0], burst[1], subject_of(unit, transfer), 0, NOBODY,
    };
    i64 accepted = request(unit->core, WRITE, &held);
    if (accepted != HELD)
        store_accepted(unit, accepted);
    if (transfer == unit->latest && transfer->next == transfer->given.lead)
        consider(unit, time);
}

void store_accepted(store_unit_t *unit, i64 time) {
    unit->held = 0;
    schedule(unit, time);
}

static void stop(store_unit_t *unit) {
    unit->generation++;
    while (unit->offers.count)
        pop(&unit->offers)->used = 0;
    unit->announcing.count = 0;
    unit->scheduled = 0;
}

/* A burst was answered. */
void store_went(store_unit_t *unit, i64 time, i64 subject, i64 beats) {
    core_t *core = unit->core;
    i64 place = subject % PLACES;
    transfer_t *transfer = &unit->places[place];
    unit->outstanding--;
    unit->backlog -= beats;
    if (subject / PLACES != unit->generation)
        return;
    if (core->failed) {
        stop(unit);
        core->told.command(
            STRUCK, transfer->given.number, time + core->params.axi_return + 2, transfer->given.count - transfer->left
        );
        return;
    }
    if (!--transfer->left)
        at(core, time + core->params.landed, STORED, unit, place, unit->generation);
    schedule(unit, time);
}

void store_done(store_unit_t *unit, i64 time, i64 place, i64 generation) {
    if (generation != unit->generation)
        return;
    transfer_t *transfer = &unit->places[place];
    pop(&unit->flying);
    transfer->used = 0;
    unit->core->told.command(DONE, transfer->given.number, time, 0);
    consider(unit, time + 1);
}

EXPORT store_unit_t *caesura_store_unit(core_t *core, i64 port, i64 number) {
    store_unit_t *unit = new_unit(core, sizeof *unit);
    unit->core = core;
    unit->client = (client_t){STORE_UNIT, port, 0, number, unit};
    return unit;
}

/* A command is valid from ``time`` on; 0 if there is no place for it. */
EXPORT i64 caesura_store_offer(store_unit_t *unit, i64 time, const given_t *given) {
    transfer_t *transfer = place_for(unit->places, unit->latest, given);
    if (!transfer)
        return 0;
    *offered(unit, transfer) = time;
    push(&unit->offers, transfer);
    consider(unit, time);
    return 1;
}

/* Abort: nothing more is announced. */
EXPORT void caesura_store_stop(store_unit_t *unit) { stop(unit); }

/* The engine is reset: nothing is outstanding. */
EXPORT void caesura_store_clear(store_unit_t *unit) {
    stop(unit);
    unit->flying.count = 0;
    unit->latest = 0;
    unit->backlog = unit->free = unit->next_accept = 0;
    for (int place = 0; place < PLACES; place++)
        unit->places[place].used = 0;
}

EXPORT i64 caesura_store_outstanding(const store_unit_t *unit) { return unit->outstanding; }
