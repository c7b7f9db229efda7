/* LD2, burst by burst: see load_unit.py. */
#include "core.h"

enum { BODY, LOADER, NO_SIDE };

static core_t *of(const load_unit_t *unit) { return unit->core; }

static transfer_t *head(const line_t *line) { return line->count ? line->items[line->head] : 0; }

/* The oldest command has all its words. */
static void finish(load_unit_t *unit, transfer_t *transfer) {
    const params_t *p = &of(unit)->params;
    i64 steps = transfer->given.steps;
    i64 last = transfer->given.count ? transfer->last + 1 + transfer->given.trail
                                     : transfer->begin + p->planned + p->filled + steps;
    unit->end = later(unit->end + steps, last);
    at(of(unit), unit->end + p->landed - 1, LOADED, unit, transfer - unit->places, unit->generation);
}

/* Accept what may be accepted. */
static void consider(load_unit_t *unit, i64 time) {
    const params_t *p = &of(unit)->params;
    while (!unit->recovering && !unit->dead && unit->flying.count < p->in_flight) {
        i64 owner = unit->flying.count ? head(&unit->flying)->given.side : NO_SIDE;
        i64 side = unit->offers[BODY] ? BODY : LOADER;
        transfer_t *chosen = owner == NO_SIDE || owner == side ? unit->offers[side] : 0, *latest = unit->latest;
        if (!chosen || (latest && latest->next < latest->given.lead))
            return;
        i64 begin = later(later(time, unit->offered[side] + 1), unit->next_accept);
        unit->offers[side] = 0;
        unit->next_accept = begin + (chosen->given.lead ? 2 : later(2, p->planned - 1 + chosen->given.runs));
        unit->latest = chosen;
        chosen->begin = begin;
        push(&unit->flying, chosen);
        if (chosen->given.count) {
            push(&unit->asking, chosen);
            if (unit->asking.count == 1)
                at(of(unit), begin + p->planned + 1, ASK, unit, unit->generation, 0);
        } else {
            unit->trail += chosen->given.trail;
            if (unit->flying.count == 1)
                finish(unit, chosen);
        }
        of(unit)->told.command(TAKEN, chosen->given.number, begin, 0);
    }
}

/* Ask for a burst, if one more may be in flight. */
void load_ask(load_unit_t *unit, i64 time, i64 generation) {
    const params_t *p = &of(unit)->params;
    if (generation != unit->generation || unit->held || !unit->asking.count || unit->in_flight == p->outstanding)
        return;
    transfer_t *transfer = head(&unit->asking);
    i64 soonest = later(transfer->begin + p->planned + 1, unit->next_ask);
    if (soonest > time) {
        at(of(unit), soonest, ASK, unit, generation, 0);
        return;
    }
    const i64 *burst = burst_of(transfer, transfer->next);
    i64 pause = burst[2];
    if (!transfer->next) {
        pause += unit->trail;
        unit->trail = transfer->given.trail;
    }
    transfer->next++;
    unit->in_flight++;
    if (transfer->next == transfer->given.count)
        pop(&unit->asking);
    unit->held = 1;
    request_t held = {
        &unit->client, time + 1, transfer->given.base + burst[0], burst[1], transfer - unit->places, pause,
        transfer->given.into + burst[3],
    };
    i64 accepted = request(of(unit), READ, &held);
    if (accepted != HELD) {
        unit->held = 0;
        unit->next_ask = accepted - 1;
        if (unit->in_flight < p->outstanding && unit->asking.count)
            at(of(unit), accepted - 1, ASK, unit, unit->generation, 0);
    }
    if (transfer == unit->latest && transfer->next == transfer->given.lead) {
        unit->next_accept = time + 1;
        consider(unit, time);
    }
}

void load_accepted(load_unit_t *unit, i64 time) {
    unit->held = 0;
    unit->next_ask = time - 1;
    if (unit->asking.count && unit->in_flight < of(unit)->params.outstanding)
        load_ask(unit, time - 1, unit->generation);
}

/* The last beat of a burst of ``transfer`` moved at ``time``; LV2 takes it ``landing`` cycles later than it might. */
void load_came(load_unit_t *unit, i64 time, transfer_t *transfer, i64 landing) {
    core_t *core = of(unit);
    unit->in_flight--;
    if (unit->recovering) {
        if (!unit->in_flight)
            at(core, time + core->params.axi_return + 2 + core->params.settled, RECOVERED, unit, unit->generation, 0);
        return;
    }
    if (core->failed && !unit->dead) {
        i64 number = transfer->given.count - transfer->left;
        unit->dead = transfer->given.side == BODY;
        /* Its first word is that which fails. */
        i64 known = later(time - burst_of(transfer, number)[1] + core->params.axi_return + 2, time + 1);
        core->told.command(STRUCK, transfer->given.number, known, number);
        return;
    }
    if (unit->dead)
        return;
    if (!--transfer->left) {
        transfer->last = time + core->params.axi_return + landing;
        if (transfer == head(&unit->flying))
            finish(unit, transfer);
    }
    if (unit->asking.count && !unit->held)
        load_ask(unit, time + core->params.axi_return + 1, unit->generation);
}

void load_done(load_unit_t *unit, i64 time, i64 place, i64 generation) {
    transfer_t *transfer = &unit->places[place];
    if (generation != unit->generation)
        return;
    pop(&unit->flying);
    if (unit->flying.count && !head(&unit->flying)->left)
        finish(unit, head(&unit->flying));
    if (!unit->flying.count || unit->flying.count == of(unit)->params.in_flight - 1)
        unit->next_accept = later(unit->next_accept, time + 2);
    transfer->used = 0;
    of(unit)->told.command(DONE, transfer->given.number, time, 0);
    consider(unit, time + 1);
}

static void forget(load_unit_t *unit) {
    unit->generation++;
    unit->flying.count = unit->asking.count = 0;
    unit->latest = 0;
    unit->trail = 0;
    for (int place = 0; place < PLACES; place++)
        unit->places[place].used = &unit->places[place] == unit->offers[BODY];
}

void load_recovered(load_unit_t *unit, i64 time, i64 generation) {
    if (!unit->recovering || generation != unit->generation)
        return;
    unit->recovering = 0;
    unit->end = unit->next_accept = unit->next_ask = time;
    of(unit)->told.command(GIVEN_UP, unit->client.number, time, 0);
    consider(unit, time);
}

EXPORT load_unit_t *caesura_load_unit(core_t *core, i64 port, i64 number) {
    load_unit_t *unit = new_unit(core, sizeof *unit);
    unit->core = core;
    unit->client = (client_t){LOAD_UNIT, port, 0, number, unit};
    return unit;
}

/* A command is valid from ``time`` on; 0 if there is no place for it. */
EXPORT i64 caesura_load_offer(load_unit_t *unit, i64 time, const given_t *given) {
    if (unit->offers[given->side])
        unit->offers[given->side]->used = 0;
    unit->offers[given->side] = place_for(unit->places, unit->latest, given);
    if (!unit->offers[given->side])
        return 0;
    unit->offered[given->side] = time;
    consider(unit, time);
    return 1;
}

/* Take the loader's commands out; 0 if there are none. */
EXPORT i64 caesura_load_abandon(load_unit_t *unit, i64 time) {
    i64 present = unit->flying.count ? head(&unit->flying)->given.side == LOADER
                                     : unit->offers[LOADER] && !unit->offers[BODY];
    if (unit->offers[LOADER])
        unit->offers[LOADER]->used = 0;
    unit->offers[LOADER] = 0;
    if (!present)
        return 0;
    unit->recovering = 1;
    forget(unit);
    if (!unit->in_flight)
        at(of(unit), time + of(unit)->params.axi_return + 2 + of(unit)->params.settled, RECOVERED, unit, unit->generation, 0);
    return 1;
}

/* The engine is reset: nothing is outstanding. */
EXPORT void caesura_load_clear(load_unit_t *unit) {
    unit->offers[BODY] = unit->offers[LOADER] = 0;
    forget(unit);
    unit->recovering = unit->dead = 0;
    unit->end = unit->next_accept = unit->next_ask = 0;
}

/* Abort: nothing more is asked for. */
EXPORT void caesura_load_stop(load_unit_t *unit) {
    unit->generation++;
    unit->dead = 1;
    for (int side = BODY; side <= LOADER; side++) {
        if (unit->offers[side])
            unit->offers[side]->used = 0;
        unit->offers[side] = 0;
    }
    unit->asking.count = 0;
}

EXPORT i64 caesura_load_outstanding(const load_unit_t *unit) { return unit->in_flight; }
