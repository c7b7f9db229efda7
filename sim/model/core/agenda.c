/* What happens when: a heap of events, and the core itself. */
#include "core.h"
#include <stdlib.h>

static const i64 MANY = (i64)1 << 60; /* more than there are events */

static int before(const event_t *a, const event_t *b) {
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void *grown(void *items, i64 *room, i64 count, i64 size) {
    if (count < *room)
        return items;
    *room = *room ? 2 * *room : 64;
    return realloc(items, *room * size);
}

void append(list_t *list, i64 item) {
    list->items = grown(list->items, &list->room, list->count, sizeof *list->items);
    list->items[list->count++] = item;
}

static void plan(core_t *core, i64 time, i64 order, i64 kind, void *who, i64 a, i64 b) {
    core->heap = grown(core->heap, &core->heap_room, core->heap_count, sizeof *core->heap);
    event_t event = {time, order, kind, a, b, who};
    i64 place = core->heap_count++;
    for (i64 above; place && (above = (place - 1) / 2, before(&event, &core->heap[above])); place = above)
        core->heap[place] = core->heap[above];
    core->heap[place] = event;
}

static event_t next(core_t *core) {
    event_t *heap = core->heap, top = heap[0], last = heap[--core->heap_count];
    i64 count = core->heap_count, place = 0;
    for (i64 below; (below = 2 * place + 1) < count; place = below) {
        below += below + 1 < count && before(&heap[below + 1], &heap[below]);
        if (!before(&heap[below], &last))
            break;
        heap[place] = heap[below];
    }
    heap[place] = last;
    return top;
}

void at(core_t *core, i64 time, i64 kind, void *who, i64 a, i64 b) {
    plan(core, time, ++core->events_planned, kind, who, a, b);
}

void early(core_t *core, i64 time, i64 kind, void *who, i64 a, i64 b) {
    plan(core, time, ++core->events_planned - MANY, kind, who, a, b);
}

void late(core_t *core, i64 time, i64 kind, void *who, i64 a, i64 b) {
    plan(core, time, ++core->events_planned + MANY, kind, who, a, b);
}

/* Whether nothing else is left to happen before ``time``, and ``time`` may come. */
int first(const core_t *core, i64 time) {
    return time <= core->last && !(core->heap_count && core->heap[0].time < time) && core->stopped == NOBODY;
}

/* Whether something is left to happen up to ``time``. */
int busy_until(const core_t *core, i64 time) { return core->heap_count && core->heap[0].time <= time; }

static void happen(core_t *core, const event_t *event) {
    i64 time = event->time;
    switch (event->kind) {
    case OF_PYTHON: core->told.event(time, event->a); break;
    case CHOOSE: choose(core, time, event->a); break;
    case DUE: due(core, time, event->a); break;
    case ENDED: ended(core, time, event->a); break;
    case FREEZE: freeze(core, time, event->a, event->b); break;
    case THAWED: thawed(core, time, event->a); break;
    case ASK: load_ask(event->who, time, event->a); break;
    case LOADED: load_done(event->who, time, event->a, event->b); break;
    case RECOVERED: load_recovered(event->who, time, event->a); break;
    case ANNOUNCE: store_announce(event->who, time, event->a); break;
    case STORED: store_done(event->who, time, event->a, event->b); break;
    }
}

EXPORT void caesura_run(core_t *core, i64 last) {
    core->last = last;
    core->stopped = NOBODY;
    while (core->heap_count && core->heap[0].time <= last && core->stopped == NOBODY) {
        event_t event = next(core);
        happen(core, &event);
    }
}

EXPORT void caesura_at(core_t *core, i64 time, i64 number) { at(core, time, OF_PYTHON, 0, number, 0); }

EXPORT core_t *caesura_new(const told_t *told) {
    core_t *core = calloc(1, sizeof *core);
    core->told = *told;
    core->stopped = core->last = NOBODY;
    return core;
}

static void give_back(list_t *list) { free(list->items); }

EXPORT void caesura_free(core_t *core) {
    for (i64 engine = 0; engine < core->params.engines; engine++) {
        for (i64 place = 0; place < core->writes[engine].count; place++)
            free(core->writes[engine].stores[core->writes[engine].head + place].banks);
        free(core->writes[engine].stores);
    }
    for (int channel = 0; channel < CHANNELS; channel++)
        give_back(&core->stalls.free[channel]);
    for (i64 unit = 0; unit < core->units.count; unit++)
        free((void *)(uintptr_t)core->units.items[unit]);
    give_back(&core->units);
    for (int way = READ; way <= WRITE; way++) {
        free(core->waiting[way]);
        free(core->queues[way].bursts);
    }
    for (i64 arena = 0; arena < core->arena_count; arena++)
        free(core->arenas[arena].ports);
    free(core->arenas);
    free(core->writes);
    free(core->reads);
    free(core->banks);
    free(core->heap);
    free(core);
}
