/* The longest paths: by wires as long as they are placed, and how much of a wire's time each pin is worth. */
#include "core.h"


static const double LATE = 1e12;
static const double DEAREST = 2;      /* tiles of wire that a unit is worth on the longest path */
static const double NOTHING = 1e-3;   /* worth less than that is worth nothing */

/* A wire's time, in ps. */
static double wire(const core_t *core, i32 net, i32 pin) {
    const design_t *d = &core->d;
    i32 from = d->driver[net], to = d->cell[pin];
    if (d->direct[pin] == DIRECT || within(core, net, pin))
        return 0;
    return d->unit * (ALWAYS + way(d->column[from] - d->column[to], d->row[from] - d->row[to]));
}

/* Sorts nets so that each comes behind those that lead to it. Those in a loop come last. */
void order_nets(core_t *core) {
    const design_t *d = &core->d;
    i32 *before = calloc(d->nets, sizeof *before), done = 0;
    for (i32 arc = 0; arc < d->arc_first[d->pins]; arc++)
        before[d->arc_net[arc]]++;
    for (i32 net = 0; net < d->nets; net++)
        if (!before[net])
            core->order[done++] = net;
    for (i32 place = 0; place < done; place++)
        for (i32 net = core->order[place], pin = d->pin_first[net]; pin < d->pin_first[net + 1]; pin++)
            for (i32 arc = d->arc_first[pin]; arc < d->arc_first[pin + 1]; arc++)
                if (!--before[d->arc_net[arc]])
                    core->order[done++] = d->arc_net[arc];
    for (i32 net = 0; net < d->nets; net++)
        if (before[net] > 0)
            core->order[done++] = net;
    free(before);
}

static double arrive(core_t *core) {
    const design_t *d = &core->d;
    double worst = 0;
    for (i32 net = 0; net < d->nets; net++)
        core->arrival[net] = d->start[net];
    for (i32 place = 0; place < d->nets; place++) {
        i32 net = core->order[place];
        if (core->arrival[net] < 0)
            continue;
        for (i32 pin = d->pin_first[net]; pin < d->pin_first[net + 1]; pin++) {
            double there = core->arrival[net] + wire(core, net, pin);
            if (d->setup[pin] >= 0 && there + d->setup[pin] > worst)
                worst = there + d->setup[pin];
            for (i32 arc = d->arc_first[pin]; arc < d->arc_first[pin + 1]; arc++)
                if (there + d->arc_delay[arc] > core->arrival[d->arc_net[arc]])
                    core->arrival[d->arc_net[arc]] = there + d->arc_delay[arc];
        }
    }
    return worst;
}

static double power8(double value) {
    value *= value;
    value *= value;
    return value * value;
}

/* Weighs each pin by the longest path through it: `part` of it by what it is now, the rest by what it was. Returns
 * the longest path of all, in ps. */
double weigh(core_t *core, double part) {
    const design_t *d = &core->d;
    double worst = arrive(core);
    for (i32 place = (i32)d->nets - 1; place >= 0; place--) {
        i32 net = core->order[place];
        double latest = LATE;
        for (i32 pin = d->pin_first[net]; pin < d->pin_first[net + 1]; pin++) {
            double needed = d->setup[pin] >= 0 ? worst - d->setup[pin] : LATE, now = 0;
            for (i32 arc = d->arc_first[pin]; arc < d->arc_first[pin + 1]; arc++)
                if (core->needed[d->arc_net[arc]] - d->arc_delay[arc] < needed)
                    needed = core->needed[d->arc_net[arc]] - d->arc_delay[arc];
            needed -= wire(core, net, pin);
            if (needed < latest)
                latest = needed;
            if (core->arrival[net] >= 0 && needed < worst && d->direct[pin] != DIRECT)
                now = DEAREST * power8(1 - (needed - core->arrival[net]) / worst);
            core->weight[pin] = part * now + (1 - part) * core->weight[pin];
            if (core->weight[pin] < NOTHING)
                core->weight[pin] = 0;
        }
        core->needed[net] = latest;
    }
    return worst;
}
