/* Faults of the memory on purpose, and stalls at random: what sim/dram.py does when it is told to.
 *
 * Errors strike bursts whose address is taken in the time of the fault. While the memory stands still, no burst is
 * served and no address leaves its register; the burst that moves goes on afterwards. */
#include "core.h"

enum { DRAWN = 1024 }; /* cycles at a time */

static void look(core_t *core) { core->awry = core->error || core->struck || core->stalls.on; }

/* Draw for more cycles: the generator of sim/dram.py, whose bits do not depend on anything. */
static void draw(stalls_t *stalls) {
    static const int shifts[CHANNELS] = {0, 6, 18, 24}; /* places of AR, AW, R and W in a draw */
    uint32_t state = stalls->state;
    for (i64 time = stalls->drawn; time < stalls->drawn + DRAWN; time++) {
        for (int channel = 0; channel < CHANNELS; channel++)
            if ((state >> shifts[channel] & 0xFF) >= stalls->rate)
                append(&stalls->free[channel], time);
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    stalls->drawn += DRAWN;
    stalls->state = state;
}

/* The first place in ``list``, which is in order, with ``time`` or later. */
static i64 place_of(const list_t *list, i64 time) {
    i64 low = 0, high = list->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (list->items[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The cycle of the last of ``beats`` that move one by one from ``time`` on. */
i64 stalled(stalls_t *stalls, i64 channel, i64 time, i64 beats) {
    list_t *list = &stalls->free[channel];
    if (time < stalls->begin) {
        if (time + beats <= stalls->begin)
            return time + beats - 1;
        beats -= stalls->begin - time;
        time = stalls->begin;
    }
    i64 place = place_of(list, time);
    while (place + beats > list->count || list->items[place] < time) {
        draw(stalls);
        place = place_of(list, time);
    }
    return list->items[place + beats - 1];
}

/* Whether a burst fails whose address is taken in cycle ``taken``. */
i64 strikes(core_t *core, i64 taken, i64 address) {
    i64 hit = core->error && core->error_begin <= taken && taken < core->error_end && core->error_base <= address &&
              address <= core->error_last;
    core->struck += hit;
    return hit;
}

/* A burst that fails has ended. */
void answered(core_t *core) {
    core->struck--;
    look(core);
}

/* What moves ends later. */
static void shift(core_t *core, i64 cycles) {
    if (!core->current.client)
        return;
    core->end += cycles;
    core->interrupted_last += cycles;
    early(core, core->end, ENDED, 0, core->current.number, 0);
}

static void thaw(core_t *core, i64 time) {
    i64 rest = core->frozen - time;
    core->frozen = 0;
    if (rest)
        shift(core, -rest);
    for (int way = READ; way <= WRITE; way++)
        if (core->registers[way].client && core->queues[way].count < core->params.queue_bursts) {
            request_t held = core->registers[way];
            refill(core, accept_burst(core, time - 1, way, &held), way);
        }
    if (!core->current.client) {
        serve(core, time);
        go_on(core);
    }
}

void freeze(core_t *core, i64 time, i64 orders, i64 end) {
    if (orders != core->orders)
        return;
    core->frozen = end;
    shift(core, end - (time + 1));
    early(core, end, THAWED, 0, orders, 0);
}

void thawed(core_t *core, i64 time, i64 orders) {
    if (orders == core->orders)
        thaw(core, time);
}

/* From cycle ``begin`` to before ``end`` bursts to bytes ``base`` to ``last`` fail, or the memory stands still. */
EXPORT void caesura_set_fault(
    core_t *core, i64 now, i64 fails, i64 freezes, i64 base, i64 last, i64 begin, i64 end
) {
    core->orders++;
    if (core->frozen)
        thaw(core, now);
    core->error = fails;
    core->error_base = base;
    core->error_last = last;
    core->error_begin = begin;
    core->error_end = end;
    if (freezes)
        late(core, begin - 1, FREEZE, 0, core->orders, end);
    look(core);
}

/* From cycle ``now`` on each channel stalls in ``rate`` of 256 cycles. */
EXPORT void caesura_set_stalls(core_t *core, i64 now, i64 seed, i64 rate) {
    core->stalls.begin = core->stalls.drawn = now;
    core->stalls.state = (uint32_t)seed;
    core->stalls.rate = rate;
    core->stalls.on = rate != 0;
    for (int channel = 0; channel < CHANNELS; channel++)
        core->stalls.free[channel].count = 0;
    look(core);
}
