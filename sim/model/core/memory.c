/* DRAM and the way to it, burst by burst: see dram.py. */
#include "core.h"
#include <stdlib.h>
#include <string.h>

enum { PORTS = 1 << 20 }; /* more than there are */

/* Note when the refresh before ``time`` began and ended, and when the next begins. */
static void set_epoch(core_t *core, i64 time) {
    i64 interval = core->params.interval, closed = core->params.closed;
    core->epoch = (time + closed) / interval;
    core->opens = core->epoch * interval;
    core->shuts = core->opens - closed;
    core->shuts_next = core->opens + interval - closed;
}

/* The cycle of the last of ``beats`` from ``time`` on at less than full bandwidth. */
static i64 pace(core_t *core, i64 time, i64 beats) {
    i64 begun = core->paced_begin, count = core->paced_count, bandwidth = core->params.bandwidth, full = core->params.full;
    if (time > begun + full * count / bandwidth)
        begun = time, count = 0;
    core->paced_begin = begun;
    core->paced_count = count + beats;
    return begun + full * (count + beats - 1) / bandwidth;
}

/* The cycle of the last of ``beats`` that may move from ``time`` on: not amid a refresh, nor too fast. */
static i64 last_beat(core_t *core, i64 time, i64 beats, i64 write) {
    if (!(core->shuts <= time && time < core->shuts_next))
        set_epoch(core, time);
    time = later(time, core->opens);
    i64 end = time + beats - 1, closing = core->shuts_next;
    if (core->stalls.on)
        end = stalled(&core->stalls, write ? CHANNELS - 1 : CHANNELS - 2, time, beats);
    else if (core->params.bandwidth != core->params.full)
        end = pace(core, time, beats);
    if (end >= closing)
        end += core->params.closed * (1 + (end - closing) / (core->params.interval - core->params.closed));
    return end;
}

static burst_t *behind(queue_t *queue) {
    return &queue->bursts[(queue->head + queue->count++) % queue->room];
}

static burst_t taken_from(queue_t *queue) {
    burst_t burst = queue->bursts[queue->head];
    queue->head = (queue->head + 1) % queue->room;
    queue->count--;
    return burst;
}

/* Queue a burst with the cycle in which it is due; returns when its address is at the memory. */
i64 accept_burst(core_t *core, i64 time, i64 write, const request_t *held) {
    const params_t *p = &core->params;
    i64 taken = later(time + p->axi_stage, core->taken[write] + 1), failed = 0;
    taken += taken == core->taken[!write];
    if (core->awry) {
        if (core->stalls.on)
            taken = stalled(&core->stalls, write ? AW : AR, taken, 1);
        failed = strikes(core, taken, held->address);
    }
    core->taken[write] = taken;
    /* Reserve the bank: when is its row open for the burst? */
    i64 line = held->address >> p->row_shift;
    bank_t *bank = &core->banks[line & (p->banks - 1)];
    if (!(core->shuts <= taken && taken < core->shuts_next))
        set_epoch(core, taken);
    i64 begin = later(core->opens, taken);
    if (bank->epoch != core->epoch)
        begin += p->miss;
    else
        begin = later(begin, bank->free) + (bank->line != line ? p->miss : 0);
    *bank = (bank_t){line, begin + held->beats, core->epoch};
    i64 due = taken + p->dram_queued;
    if (write)
        due = later(later(due, begin), time + p->write_buffered);
    else if (begin + p->latency > due)
        due = begin + p->latency - 1;
    *behind(&core->queues[write]) = (burst_t){
        held->client, ++core->numbers, due, held->beats, write, held->subject, held->pause, held->into, failed,
    };
    core->bursts_accepted++;
    return taken;
}

/* Let the next burst of the other kind go first if it becomes due amid the one that moves. */
static void interrupt(core_t *core, i64 write) {
    i64 due = core->queues[write].bursts[core->queues[write].head].due, end = core->end;
    if (due > end || !core->current.client)
        return;
    core->interrupted = core->current;
    core->current = taken_from(&core->queues[write]);
    if (!write)
        core->held_up = core->landing = 0;
    i64 last = last_beat(core, end + 1, core->current.beats, write), left = end - due + 1; /* cycles for the rest */
    core->interrupted_last = last;
    core->interrupted_left = left;
    core->end = last - left;
}

/* The bus is free from ``time`` on: begin a burst, or wait for the first that becomes due. */
void serve(core_t *core, i64 time) {
    queue_t *reads = &core->queues[READ], *writes = &core->queues[WRITE];
    if (core->frozen || !(reads->count || writes->count))
        return;
    i64 way = reads->count ? READ : WRITE;
    if (reads->count && writes->count) {
        i64 read = later(reads->bursts[reads->head].due, time), write = later(writes->bursts[writes->head].due, time);
        if (write < read || (write == read && core->write_next))
            way = WRITE;
    }
    queue_t *queue = &core->queues[way];
    core->plan++;
    if (queue->bursts[queue->head].due > time) {
        at(core, queue->bursts[queue->head].due, DUE, 0, core->plan, 0);
        return;
    }
    burst_t *burst = &core->current;
    *burst = taken_from(queue);
    if (burst->pause && burst->client->moved + burst->pause >= time)
        time = burst->client->moved + burst->pause + 1;
    core->end = last_beat(core, time, burst->beats, burst->write);
    if (!burst->write) {
        core->held_up = core->landing = 0;
        if (burst->into >= 0 && meets_at_lv2(core, time, burst->into, burst->beats)) {
            core->held_up = held_by_lv2(core, burst->client->port / 3, time, burst->into, burst->beats);
            core->end += core->held_up;
        }
    }
    if (core->queues[!way].count && core->write_next != burst->write)
        interrupt(core, !burst->write);
}

/* A request enters the register in cycle ``time``; returns when it leaves it, or the next may be offered. */
static i64 grant(core_t *core, i64 time, i64 write, const request_t *held) {
    core->last_port[write] = held->client->port;
    i64 current = core->current.client ? core->current.number : NOBODY, taken;
    int interrupted = core->interrupted.client != 0;
    int served = (current != NOBODY && core->current.write == write) || (interrupted && core->interrupted.write == write);
    if (core->queues[write].count < core->params.queue_bursts + !served && !core->frozen) {
        taken = accept_burst(core, time, write, held);
        if (core->queues[write].count == 1 && !interrupted) {
            if (current == NOBODY)
                serve(core, later(taken, core->free));
            else if (!served && core->write_next == write)
                interrupt(core, write);
            if (core->current.client && core->current.number != current)
                early(core, core->end, ENDED, 0, core->current.number, 0);
        }
    } else {
        core->registers[write] = *held;
        taken = time + core->params.axi_stage;
    }
    return taken;
}

static void choose_at(core_t *core, i64 time, i64 write) {
    if (time < core->choosing[write]) {
        core->choosing[write] = time;
        late(core, time, CHOOSE, 0, write, 0);
    }
}

static void queue_up(core_t *core, i64 write, const request_t *held) {
    core->waiting[write] =
        grown(core->waiting[write], &core->waiting_room[write], core->waiting_count[write], sizeof *held);
    core->waiting[write][core->waiting_count[write]++] = *held;
}

/* Take one of the requests that wait in cycle ``time``, round robin; whether there is one. */
static int chosen(core_t *core, i64 time, i64 write, request_t *found) {
    request_t *waiting = core->waiting[write];
    i64 count = core->waiting_count[write], nearest = PORTS, place = NOBODY, soonest = NEVER;
    for (i64 number = 0; number < count; number++) {
        soonest = sooner(soonest, waiting[number].time);
        if (waiting[number].time <= time) {
            i64 distance = waiting[number].client->port - core->last_port[write] - 1;
            distance += distance < 0 ? PORTS : 0; /* the first port behind the last that was served, and around */
            if (distance < nearest)
                nearest = distance, place = number;
        }
    }
    if (place == NOBODY) {
        choose_at(core, soonest, write);
        return 0;
    }
    *found = waiting[place];
    memmove(&waiting[place], &waiting[place + 1], (count - place - 1) * sizeof *waiting);
    core->waiting_count[write]--;
    return 1;
}

static void tell_accepted(core_t *core, const request_t *held, i64 time) {
    client_t *client = held->client;
    switch (client->kind) {
    case LOAD_UNIT: load_accepted(client->unit, time); break;
    case STORE_UNIT: store_accepted(client->unit, time); break;
    default: core->told.accepted(held->subject, time);
    }
}

void choose(core_t *core, i64 time, i64 write) {
    request_t held;
    if (time != core->choosing[write])
        return;
    core->choosing[write] = NEVER;
    if (!chosen(core, time, write, &held))
        return;
    i64 taken = grant(core, time, write, &held);
    if (core->waiting_count[write] && !core->registers[write].client)
        choose_at(core, taken, write);
    tell_accepted(core, &held, taken);
}

i64 request(core_t *core, i64 write, const request_t *held) {
    if (core->registers[write].client) { /* until a burst ends */
        queue_up(core, write, held);
        return HELD;
    }
    if (core->waiting_count[write] || busy_until(core, held->time)) { /* others may ask in the same cycle */
        queue_up(core, write, held);
        choose_at(core, held->time, write);
        return HELD;
    }
    return grant(core, held->time, write, held);
}

void due(core_t *core, i64 time, i64 plan) {
    if (plan == core->plan && !core->current.client) {
        serve(core, time);
        go_on(core);
    }
}

/* The burst that moves will end: at once if nothing else happens before. */
void go_on(core_t *core) {
    if (!core->current.client)
        return;
    if (first(core, core->end))
        ended(core, core->end, core->current.number);
    else
        early(core, core->end, ENDED, 0, core->current.number, 0);
}

/* What was in the register entered the queue at ``time``, and filled it: one that waits takes its place. */
void refill(core_t *core, i64 time, i64 write) {
    request_t held;
    core->registers[write].client = 0;
    if (!core->waiting_count[write])
        return;
    if (busy_until(core, time)) {
        choose_at(core, time, write);
        return;
    }
    if (!chosen(core, time, write, &held))
        return;
    core->registers[write] = held;
    core->last_port[write] = held.client->port;
    i64 taken = time + core->params.axi_stage;
    tell_accepted(core, &held, taken);
}

static void tell_served(core_t *core, const burst_t *burst, i64 time, i64 landing) {
    client_t *client = burst->client;
    switch (client->kind) {
    case LOAD_UNIT:
        load_came(client->unit, time, &((load_unit_t *)client->unit)->places[burst->subject], landing);
        break;
    case STORE_UNIT: store_went(client->unit, time, burst->subject, burst->beats); break;
    default: core->told.served(burst->subject, time);
    }
}

/* The last beat of a burst moved at ``time``; goes on with bursts that end before anything else happens. */
void ended(core_t *core, i64 time, i64 number) {
    if (!core->current.client || number != core->current.number || time != core->end)
        return; /* it was interrupted */
    for (;;) {
        burst_t burst = core->current;
        i64 write = burst.write, landing = core->landing;
        burst.client->moved = time;
        core->failed = burst.failed;
        if (burst.failed)
            answered(core);
        core->write_next = !write;
        core->free = time + 1;
        if (core->registers[write].client) {
            request_t held = core->registers[write];
            refill(core, accept_burst(core, time, write, &held), write);
        }
        core->current.client = 0;
        if (!core->interrupted.client) {
            serve(core, time + 1);
            tell_served(core, &burst, time, landing);
            core->resumed = 0;
        } else {
            core->current = core->interrupted;
            core->end = core->interrupted_last;
            i64 left = core->interrupted_left;
            core->interrupted.client = 0;
            tell_served(core, &burst, time, landing);
            core->resumed = left;
        }
        if (!core->current.client)
            return;
        time = core->end;
        if (!first(core, time)) {
            early(core, time, ENDED, 0, core->current.number, 0);
            return;
        }
    }
}

/* -- for Python ---------------------------------------------------------------------------------------- */

EXPORT void caesura_memory(core_t *core, const params_t *params) {
    core->params = *params;
    for (int way = READ; way <= WRITE; way++) {
        core->taken[way] = core->last_port[way] = NOBODY;
        core->choosing[way] = NEVER;
        core->queues[way].room = params->queue_bursts + 2; /* one more than enters behind what is served */
        core->queues[way].bursts = calloc(core->queues[way].room, sizeof *core->queues[way].bursts);
    }
    core->banks = malloc(params->banks * sizeof *core->banks);
    for (i64 bank = 0; bank < params->banks; bank++)
        core->banks[bank] = (bank_t){NOBODY, 0, NOBODY};
    core->writes = calloc(params->engines, sizeof *core->writes);
    for (i64 engine = 0; engine < params->engines; engine++)
        core->writes[engine].before = core->writes[engine].latest = NOBODY;
    core->reads = calloc(params->engines, sizeof *core->reads);
    core->read_low = NEVER, core->read_high = NOBODY;
    core->soonest = NEVER;
    set_epoch(core, 0);
}

EXPORT i64 caesura_request(core_t *core, client_t *client, i64 time, i64 write, i64 address, i64 beats, i64 number) {
    request_t held = {client, time, address, beats, number, 0, NOBODY};
    return request(core, write, &held);
}

EXPORT void caesura_set_timing(core_t *core, i64 latency, i64 miss, i64 bandwidth) {
    core->params.latency = latency;
    core->params.miss = miss;
    core->params.bandwidth = bandwidth;
}
