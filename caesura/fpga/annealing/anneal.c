/* The schedule: how hot it is when, and how often paths are looked at. */
#include "core.h"

static const double HOTTEST = 20, COLDER = 0.95; /* in tiles of wire; from stage to stage */
static const double NOW = 0.3;                   /* the part of a weight that the latest look at paths decides */
enum { LOOKS = 10, WIDEST = 12, CLOSEST = 4, CLOSER = 8 };

static void *room(i64 count, i64 size) { return calloc(count > 0 ? count : 1, size); }

static core_t *begun(const design_t *design) {
    core_t *core = room(1, sizeof *core);
    core->d = *design;
    core->random = 88172645463325252u + 7919 * (uint64_t)design->seed;
    core->bins = (i32)design->width / BIN + 1;
    core->cost = room(design->nets, sizeof *core->cost);
    core->weight = room(design->pins, sizeof *core->weight);
    core->arrival = room(design->nets, sizeof *core->arrival);
    core->needed = room(design->nets, sizeof *core->needed);
    core->used = room((design->height / BIN + 1) * core->bins, sizeof *core->used);
    core->joined = room((design->height / BIN + 1) * core->bins, sizeof *core->joined);
    core->box = room(design->nets, sizeof *core->box);
    core->order = room(design->nets, sizeof *core->order);
    core->far_first = room(design->cells + 1, sizeof *core->far_first);
    core->far_pin = room(design->pins, sizeof *core->far_pin);
    core->far_net = room(design->pins, sizeof *core->far_net);
    core->drives = room(design->cells, sizeof *core->drives);
    core->seen_cell = room(design->cells, sizeof *core->seen_cell);
    core->seen_net = room(design->nets, sizeof *core->seen_net);
    return core;
}

static void ended(core_t *core) {
    void *rooms[] = {core->cost, core->weight, core->arrival, core->needed, core->used, core->joined, core->box, core->order,
                     core->far_first, core->far_pin, core->far_net, core->drives, core->seen_cell, core->seen_net};
    for (unsigned place = 0; place < sizeof rooms / sizeof *rooms; place++)
        free(rooms[place]);
    free(core);
}

static void tell(core_t *core, double *told, double worst) {
    told[WORST] = worst;
    told[WIRES] = recount(core);
    told[PEAK] = 0;
    for (i64 bin = 0; bin < (core->d.height / BIN + 1) * core->bins; bin++)
        if (core->used[bin] > told[PEAK])
            told[PEAK] = core->used[bin];
}

/* Moves cells about, and tells what it was before, and what it is at the end. */
EXPORT void caesura_anneal(const design_t *design) {
    core_t *core = begun(design);
    prepare(core);
    order_nets(core);
    tell(core, design->told, weigh(core, 1));
    recount(core);
    core->heat = HOTTEST;
    for (i64 stage = 0; stage < design->stages && design->candidates; stage++) {
        i32 range = greater(WIDEST - (i32)(stage / CLOSER), CLOSEST);
        for (i32 look = 0; look < LOOKS; look++) {
            for (i64 move = 0; move < design->moves / LOOKS; move++)
                step(core, design->candidate[below(core, (i32)design->candidates)], range);
            weigh(core, NOW);
            recount(core);
        }
        core->heat *= COLDER;
    }
    tell(core, design->told + TOLD, weigh(core, 1));
    ended(core);
}
