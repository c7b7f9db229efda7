/* The units that stay on the chip, and their ports of LV1 and LV2, which meet at banks: see bank_ports.py. */
#include "core.h"
#include <stdlib.h>

enum { NOWHERE = -1, MOST_PORTS = 64 };

static stream_t *stream_of(port_t *port, i64 number) { return &port->streams[number % STREAMS]; }

static i64 end_of(const stream_t *stream) { return stream->start + stream->length; }

/* The bank that ``slot`` asks for. */
static i64 bank_of(const stream_t *stream, i64 slot, i64 banks) {
    if (stream->words)
        return stream->words[slot] < 0 ? NOWHERE : (stream->first + stream->words[slot]) & (banks - 1);
    if (stream->period == 1)
        return (stream->first + slot) & (banks - 1);
    if ((slot + 1) % stream->period)
        return NOWHERE;
    return (stream->first + slot / stream->period) & (banks - 1);
}

/* Whether a stream asks for the next word in every slot: two of these that do not meet now will not. */
static int even(const stream_t *stream) { return !stream->words && !stream->others && stream->period == 1; }

/* The second bank that ``slot`` asks for. */
static i64 other_of(const stream_t *stream, i64 slot, i64 banks) {
    return stream->others && stream->others[slot] >= 0 ? stream->others[slot] & (banks - 1) : NOWHERE;
}

static uint64_t bit(i64 bank) { return bank < 0 ? 0 : (uint64_t)1 << (bank % 64); }

/* Whether ``slot`` is there to make up for a lost cycle. */
static int makes_up(const stream_t *stream, i64 slot) {
    return stream->ahead && stream->words && slot < stream->length && stream->words[slot] < 0;
}

/* The first of a port's streams from ``number`` on that is not over at ``time``; one goes behind the other. */
static i64 not_over(port_t *port, i64 number, i64 time) {
    while (number < port->newest && end_of(stream_of(port, number)) <= time) {
        i64 end = end_of(stream_of(port, number++));
        if (number < port->newest)
            stream_of(port, number)->start = later(stream_of(port, number)->start, end);
    }
    return number;
}

/* The port loses cycle ``time``. */
void lose(port_t *port, i64 time) {
    i64 number = not_over(port, later(0, port->newest - STREAMS), time);
    if (number < port->newest && stream_of(port, number)->start <= time)
        stream_of(port, number)->start++, port->until++;
}

/* By how many cycles a stream of the port is later than it was timed. */
static i64 put_back(port_t *port, i64 number) {
    i64 oldest = later(0, port->newest - STREAMS);
    for (i64 place = oldest + 1; place <= number; place++)
        stream_of(port, place)->start = later(stream_of(port, place)->start, end_of(stream_of(port, place - 1)));
    const stream_t *stream = stream_of(port, later(number, oldest));
    return stream->start - stream->timed;
}

/* By how many cycles ``mine`` is later than without the others, whose ports owe what they lost. */
static i64 met(arena_t *arena, i64 port, stream_t *mine) {
    i64 at[MOST_PORTS], wanted[MOST_PORTS], second[MOST_PORTS], time = mine->start, slot = 0;
    int lost[MOST_PORTS];
    for (i64 other = 0; other < arena->count; other++)
        at[other] = later(0, arena->ports[other].newest - STREAMS);
    while (slot < mine->length) {
        i64 soonest = NEVER, change = time + mine->length - slot; /* when somebody begins or ends */
        uint64_t asked = 0;
        int clash = 0, all_even = even(mine);
        for (i64 other = 0; other < arena->count; other++) {
            const stream_t *stream = mine;
            i64 place = slot;
            wanted[other] = second[other] = NOWHERE;
            if (other != port) {
                at[other] = not_over(&arena->ports[other], at[other], time);
                if (at[other] == arena->ports[other].newest)
                    continue;
                stream = stream_of(&arena->ports[other], at[other]);
                soonest = sooner(soonest, stream->start);
                place = time - stream->start;
                change = sooner(change, place < 0 ? stream->start : end_of(stream));
                if (place < 0)
                    continue;
                all_even &= even(stream);
            }
            wanted[other] = bank_of(stream, place, arena->banks);
            second[other] = other_of(stream, place, arena->banks);
            uint64_t banks = bit(wanted[other]) | bit(second[other]);
            clash |= (asked & banks) != 0;
            asked |= banks;
        }
        if (soonest == NEVER)
            break; /* nobody is left to meet */
        if (soonest > time) { /* nobody has begun */
            i64 alone = sooner(soonest - time, mine->length - slot);
            time += alone;
            slot += alone;
            continue;
        }
        if (!clash && all_even) {
            slot += change - time;
            time = change;
            continue;
        }
        lost[port] = 0;
        if (clash) {
            asked = 0;
            for (i64 rank = 0; rank < arena->count; rank++) {
                i64 other = (arena->turn + rank) % arena->count;
                uint64_t banks = bit(wanted[other]) | bit(second[other]);
                lost[other] = (asked & banks) != 0;
                asked |= banks;
                if (lost[other] && other != port) {
                    stream_t *stream = stream_of(&arena->ports[other], at[other]);
                    if (!makes_up(stream, time - stream->start + 1)) {
                        stream->start++;
                        arena->ports[other].owed++;
                        arena->ports[other].until++;
                    }
                }
            }
            arena->turn = (arena->turn + 1) % arena->count;
        }
        slot += !lost[port];
        time++;
        while (time - slot > mine->start && makes_up(mine, slot))
            slot++;
    }
    return time - slot - mine->start;
}

static int is_lv2(const place_t *place) { return place->arena == LV2_WRITES || place->arena == LV2_READS; }

/* The port of LV2, if others meet there. */
static port_t *at_lv2(pipe_t *pipe) {
    const place_t *place = pipe->out.arena == LV2_WRITES ? &pipe->out : &pipe->in;
    return is_lv2(place) ? &pipe->core->arenas[place->arena].ports[place->port] : 0;
}

static int is_ld1(const pipe_t *pipe) { return !pipe->vec && pipe->out.arena > LV2_READS; }

/* A port asks for what a stream says; returns by how many cycles it is later than alone, what the port lost included. */
static i64 ask(core_t *core, const place_t *place, stream_t stream) {
    if (place->arena == NOBODY)
        return 0;
    arena_t *arena = &core->arenas[place->arena];
    port_t *port = &arena->ports[place->port];
    i64 late = is_lv2(place) ? 0 : port->owed;
    port->owed = 0;
    stream.start += late;
    for (i64 other = 0; other < arena->count; other++)
        if (other != place->port && arena->ports[other].until > stream.start) {
            i64 lost = met(arena, place->port, &stream);
            stream.start += lost;
            late += lost;
            break;
        }
    port->until = later(port->until, end_of(&stream));
    stream.timed = stream.start;
    *stream_of(port, port->newest++) = stream;
    return late;
}

/* LD1, LD0 or ST1 takes a copy: planner, source and realigner. ``end`` is the first cycle in which the realigner is
 * free. */
static i64 copied(pipe_t *pipe, asked_t *asked) {
    const params_t *p = &pipe->core->params;
    const work_t *work = asked->work;
    port_t *port = at_lv2(pipe);
    i64 put = port && port->newest ? put_back(port, port->newest - 1) : 0;
    i64 begin = asked->begin = later(asked->valid, pipe->ready + (pipe->follows ? put : 0));
    i64 end = later(begin + p->planned + p->filled, pipe->end + put) + work->steps;
    if (work->late)
        end = later(end, begin + p->planned + p->fetched + work->late);
    i64 step = end - work->steps, late;
    late = ask(pipe->core, &pipe->in, (stream_t){step - p->ahead, work->length, asked->from, 1, 1, work->reads, 0});
    if (is_ld1(pipe))
        lv2_read(pipe->core, pipe->in.port / 2, &(reading_t){
            step - p->ahead + late, work->fetched, asked->from, asked->from + work->low, asked->from + work->high,
            work->fetches,
        });
    step += late + p->landed - 1;
    late += ask(pipe->core, &pipe->out, (stream_t){step, work->length, asked->into, 1, 0, work->writes, 0});
    pipe->end = end += late;
    pipe->ready = begin + p->planned - 1 + work->runs;
    pipe->follows = work->runs > 2;
    if (pipe->follows)
        pipe->ready = later(pipe->ready, end - work->ahead + 1);
    asked->number = port ? port->newest - 1 : 0;
    return end + p->landed - 1;
}

/* VEC takes an instruction: one at a time. */
static i64 computed(pipe_t *pipe, asked_t *asked) {
    const work_t *work = asked->work;
    i64 begin = asked->begin = later(asked->valid, pipe->ready), late = 0;
    if (work->runs)
        late = ask(
            pipe->core, &pipe->in, (stream_t){begin + work->ahead, work->runs, asked->from, 1, 0, work->parameters, 0}
        );
    begin += late;
    i64 step = begin + work->setup;
    late = 0;
    if (work->reads || work->others)
        late = ask(pipe->core, &pipe->in, (stream_t){step, work->length, 0, 1, 0, work->reads, work->others});
    i64 written = step + work->tail - 1 + late;
    late += ask(
        pipe->core, &pipe->out, (stream_t){written, work->length, asked->into, work->period, 0, work->writes, 0}
    );
    return pipe->ready = step + work->steps - 1 + work->tail + late;
}

/* -- for Python ---------------------------------------------------------------------------------------- */

/* Add an arena of ``ports`` ports to a memory of ``banks``; returns its number. */
EXPORT i64 caesura_arena(core_t *core, i64 ports, i64 banks) {
    core->arenas = realloc(core->arenas, (core->arena_count + 1) * sizeof *core->arenas);
    core->arenas[core->arena_count] = (arena_t){calloc(ports, sizeof(port_t)), ports, banks, 0};
    return core->arena_count++;
}

EXPORT pipe_t *caesura_pipe(core_t *core, i64 vec, i64 in, i64 in_port, i64 out, i64 out_port) {
    pipe_t *pipe = new_unit(core, sizeof *pipe);
    *pipe = (pipe_t){.core = core, .vec = vec, .in = {in, in_port}, .out = {out, out_port}};
    return pipe;
}

/* A body begins: its ports owe nothing, and the first has its turn. */
EXPORT void caesura_pipe_begin(pipe_t *pipe) {
    const place_t places[] = {pipe->in, pipe->out};
    for (int side = 0; side < 2; side++)
        if (places[side].arena != NOBODY) {
            arena_t *arena = &pipe->core->arenas[places[side].arena];
            arena->ports[places[side].port].owed = 0;
            arena->turn = 0;
        }
}

/* The engine is reset: nobody asks any more for what its ports would have asked for. */
EXPORT void caesura_pipe_clear(pipe_t *pipe) {
    const place_t places[] = {pipe->in, pipe->out};
    for (int side = 0; side < 2; side++)
        if (places[side].arena != NOBODY)
            pipe->core->arenas[places[side].arena].ports[places[side].port] = (port_t){0};
    if (is_ld1(pipe))
        pipe->core->reads[pipe->in.port / 2] = (reads_t){0};
    pipe->ready = pipe->end = pipe->follows = 0;
}

/* By how many cycles LD1 or ST1 ends instruction ``number`` later than it was timed. */
EXPORT i64 caesura_pipe_put_back(pipe_t *pipe, i64 number) { return put_back(at_lv2(pipe), number); }

/* Take a command; says when it begins, and returns when it signals: less than 0 if it goes to or from LV2, where others
 * may yet hold it up. */
EXPORT i64 caesura_pipe_run(pipe_t *pipe, asked_t *asked) {
    if (pipe->vec)
        return computed(pipe, asked);
    i64 end = copied(pipe, asked);
    return at_lv2(pipe) ? -end : end;
}
