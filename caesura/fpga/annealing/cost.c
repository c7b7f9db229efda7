/* What a placement costs: the length of its wires, the time of those on long paths, and wires where there are too many. */
#include "core.h"
#include <string.h>

static const double ROOM = 1100; /* tiles of wire that a bin has room for, with some to spare for the router */
static const double JOINED = 600; /* nets that its cells can be joined to, one by one */
static const double INSIDE = 1;   /* tiles of wire that one within a tile is worth, which takes none that others could */
static const double HOPELESS = 12; /* times the temperature: more is not looked into */
enum { CHANCES = 4096 };

static int counts(const core_t *core, i32 net) {
    i32 sinks = core->d.pin_first[net + 1] - core->d.pin_first[net];
    return core->d.driver[net] >= 0 && sinks && sinks <= LARGE;
}

/* Returns what a net costs, and the box around it. */
static double net_cost(const core_t *core, i32 net, box_t *around) {
    const design_t *d = &core->d;
    i32 from = d->driver[net], column = d->column[from], row = d->row[from];
    i32 left = column, right = column, top = row, bottom = row;
    double time = 0;
    for (i32 pin = d->pin_first[net]; pin < d->pin_first[net + 1]; pin++) {
        i32 x = d->column[d->cell[pin]], y = d->row[d->cell[pin]];
        left = lesser(left, x);
        right = greater(right, x);
        top = lesser(top, y);
        bottom = greater(bottom, y);
        if (within(core, net, pin)) {
            time -= INSIDE + core->weight[pin] * ALWAYS;
        } else if (core->weight[pin] > 0) {
            time += core->weight[pin] * way(x - column, y - row);
        }
    }
    *around = (box_t){left, right, top, bottom};
    return d->share[net] * (right - left + bottom - top) + time;
}

/* What is beyond the room of a bin costs the more, the more there is. */
static double crowded(double used, double room) {
    double over = used - room;
    return over > 0 ? over * over / room : 0;
}

/* Lays the wires of a net evenly over the bins of its box, or takes them up (`sign` -1); returns what that costs. */
static double lay(core_t *core, i32 net, box_t box, double sign) {
    i32 left = box.left / BIN, right = box.right / BIN, top = box.top / BIN, bottom = box.bottom / BIN;
    double length = sign * core->d.share[net] * (box.right - box.left + box.bottom - box.top), cost = 0;
    if (length == 0)
        return 0;
    length /= (right - left + 1) * (bottom - top + 1);
    for (i32 y = top; y <= bottom; y++)
        for (i32 x = left; x <= right; x++) {
            double *used = &core->used[y * core->bins + x];
            cost -= crowded(*used, ROOM);
            *used += length;
            cost += crowded(*used, ROOM);
        }
    return cost;
}

static double *joined_in(const core_t *core, i32 column, i32 row) {
    return &core->joined[row / BIN * core->bins + column / BIN];
}

/* Takes a cell from one tile to another; returns what that costs in the bins of both. */
static double crowd(core_t *core, i32 cell, i32 column, i32 row, i32 to_column, i32 to_row) {
    double *from = joined_in(core, column, row), *to = joined_in(core, to_column, to_row), cost = 0;
    i32 nets = core->d.net_first[cell + 1] - core->d.net_first[cell];
    if (from == to)
        return 0;
    cost -= crowded(*from, JOINED) + crowded(*to, JOINED);
    *from -= nets;
    *to += nets;
    return cost + crowded(*from, JOINED) + crowded(*to, JOINED);
}

/* Does so for all that were moved, or undoes it. */
static double crowd_all(core_t *core, int undo) {
    double cost = 0;
    for (i32 place = 0; place < core->count; place++) {
        i32 cell = core->moved[place], column = core->d.column[cell], row = core->d.row[cell];
        cost += undo ? crowd(core, cell, column, row, core->old_column[place], core->old_row[place])
                     : crowd(core, cell, core->old_column[place], core->old_row[place], column, row);
    }
    return cost;
}

/* Returns by how much the time of large nets changes, whose wires are not counted. */
static double far_change(const core_t *core) {
    const design_t *d = &core->d;
    double change = 0;
    for (i32 place = 0; place < core->count; place++) {
        i32 cell = core->moved[place], column = core->old_column[place], row = core->old_row[place];
        for (i32 far = core->far_first[cell]; far < core->far_first[cell + 1]; far++) {
            double weight = core->weight[core->far_pin[far]];
            i32 from = d->driver[core->far_net[far]];
            if (weight > 0)
                change += weight * (way(d->column[cell] - d->column[from], d->row[cell] - d->row[from]) -
                                    way(column - d->column[from], row - d->row[from]));
        }
        i32 net = core->drives[cell];
        if (net == NONE)
            continue;
        for (i32 pin = d->pin_first[net]; pin < d->pin_first[net + 1]; pin++) {
            i32 to = d->cell[pin];
            if (core->weight[pin] > 0)
                change += core->weight[pin] * (way(d->column[to] - d->column[cell], d->row[to] - d->row[cell]) -
                                               way(d->column[to] - column, d->row[to] - row));
        }
    }
    return change;
}

static void touch(core_t *core) {
    const design_t *d = &core->d;
    core->touched = 0;
    for (i32 place = 0; place < core->count; place++)
        for (i32 cell = core->moved[place], at = d->net_first[cell]; at < d->net_first[cell + 1]; at++) {
            i32 net = d->net[at];
            if (core->seen_net[net] == core->number || !counts(core, net) || core->touched == MANY)
                continue;
            core->seen_net[net] = core->number;
            core->nets[core->touched++] = net;
        }
}

/* Decides whether the move that was made stays: always if it makes things better, and the more seldom the more it makes
 * them worse. */
int accepted(core_t *core) {
    double bound = core->heat * core->d.chance[below(core, CHANCES)], change = far_change(core);
    touch(core);
    for (i32 place = 0; place < core->touched; place++) {
        i32 net = core->nets[place];
        core->fresh[place] = net_cost(core, net, &core->boxes[place]);
        change += core->fresh[place] - core->cost[net];
    }
    if (change > HOPELESS * core->heat)
        return 0;
    for (i32 place = 0; place < core->touched; place++) {
        i32 net = core->nets[place];
        if (memcmp(&core->boxes[place], &core->box[net], sizeof(box_t)))
            change += lay(core, net, core->box[net], -1) + lay(core, net, core->boxes[place], 1);
    }
    change += crowd_all(core, 0);
    int stays = change <= bound;
    if (!stays)
        crowd_all(core, 1);
    for (i32 place = 0; place < core->touched; place++) {
        i32 net = core->nets[place];
        if (stays) {
            core->cost[net] = core->fresh[place];
            core->box[net] = core->boxes[place];
        } else if (memcmp(&core->boxes[place], &core->box[net], sizeof(box_t))) {
            lay(core, net, core->boxes[place], -1);
            lay(core, net, core->box[net], 1);
        }
    }
    return stays;
}

/* Counts everything anew. Returns the length of all wires, in tiles. */
double recount(core_t *core) {
    const design_t *d = &core->d;
    double length = 0;
    memset(core->used, 0, (d->height / BIN + 1) * core->bins * sizeof *core->used);
    memset(core->joined, 0, (d->height / BIN + 1) * core->bins * sizeof *core->joined);
    for (i32 cell = 0; cell < d->cells; cell++)
        *joined_in(core, d->column[cell], d->row[cell]) += d->net_first[cell + 1] - d->net_first[cell];
    for (i32 net = 0; net < d->nets; net++) {
        box_t box;
        if (d->driver[net] < 0)
            continue;
        core->cost[net] = net_cost(core, net, &box);
        length += box.right - box.left + box.bottom - box.top;
        core->box[net] = box;
        if (counts(core, net))
            lay(core, net, box, 1);
    }
    return length;
}

/* Finds what belongs to large nets. */
void prepare(core_t *core) {
    const design_t *d = &core->d;
    i32 *filled = calloc(d->cells, sizeof *filled);
    for (i32 cell = 0; cell < d->cells; cell++)
        core->drives[cell] = NONE;
    for (int pass = 0; pass < 2; pass++) {
        for (i32 net = 0; net < d->nets; net++) {
            if (d->driver[net] < 0 || d->pin_first[net + 1] - d->pin_first[net] <= LARGE)
                continue;
            core->drives[d->driver[net]] = net;
            for (i32 pin = d->pin_first[net]; pin < d->pin_first[net + 1]; pin++) {
                i32 cell = d->cell[pin];
                if (pass == 0) {
                    core->far_first[cell + 1]++;
                    continue;
                }
                i32 at = core->far_first[cell] + filled[cell]++;
                core->far_pin[at] = pin;
                core->far_net[at] = net;
            }
        }
        for (i32 cell = 0; pass == 0 && cell < d->cells; cell++)
            core->far_first[cell + 1] += core->far_first[cell];
    }
    free(filled);
}
