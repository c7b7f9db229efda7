/* Anneals a placement: what for, and by which rules, says __init__.py; what the arrays hold, design.py. */
#include <stdint.h>
#include <stdlib.h>

typedef int32_t i32;
typedef int64_t i64;

#define EXPORT __attribute__((visibility("default")))
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* the same placement on every machine */
#endif

enum { WIRED, DIRECT, TABLE };  /* of a pin: behind a wire, behind none, a table's input */
enum { HALVES = 8 };            /* of a tile of logic: a look-up table and a register each. Two of them are a slice. */
enum { NONE = -1, FIXED = -2 }; /* of a place: nothing is there, or what never moves */

/* What a cell is: a register; a look-up table that may take any place; one of two that share a half, as the register
 * takes what the table gives; a table that selects between two; a register whose input does not come from its table;
 * a table that moves with all of its kind in its tile, or not at all. */
enum { REGISTER = 1, PLAIN = 2, TIED = 4, SELECTS = 8, PASSED_BY = 16, TOGETHER = 32 };

/* The layout is that of design.py. Places are numbered tile by tile, tiles row by row. */
typedef struct {
    i64 width, height, cells, nets, pins, candidates, stages, moves, seed, unit;
    i32 *column, *row, *half, *kind, *tile_key, *slice_key;    /* by cell */
    i32 *net_first, *net;                                      /* by cell: its nets */
    i32 *pin_first, *driver, *start;                           /* by net: its sinks, ps from the clock to its driver */
    i32 *cell, *setup, *direct, *arc_first;                    /* by pin: ps ahead of the clock, how it is joined */
    i32 *arc_net, *arc_delay;                                  /* which nets a pin leads to, after so many ps */
    i32 *table, *reg;                                          /* by place: the cell that is there */
    i32 *writer, *goes_on, *logic;                             /* by tile: of its RAM; a chain goes on to the right */
    i32 *candidate;                                            /* cells that may move */
    double *share, *chance, *told;
} design_t;

enum { WORST, WIRES, PEAK, TOLD }; /* what is told: ps of the longest path, length of all wires, of those in a bin */

enum { LARGE = 200 };  /* a net with more sinks is not worth its wires: they go everywhere */
enum { BIN = 4 };      /* columns and rows of tiles in which wires are counted together */
enum { ALWAYS = 6 };   /* units that every wire takes */
enum { NEAR = 5 };     /* tiles that a wire crosses step by step; beyond there are long ones */
enum { MANY = 4096, CHANGES = 1 << 14 };

typedef struct {
    int16_t left, right, top, bottom;
} box_t;

typedef struct {
    i32 *where, old;
} change_t;

typedef struct core {
    design_t d;
    uint64_t random;
    double heat;                                  /* the temperature */
    double *cost, *weight, *arrival, *needed;     /* by net; of a ns, by pin; ps, by net */
    double *used, *joined;                        /* by bin: wires, nets of cells */
    box_t *box;                                   /* by net */
    i32 bins;                                     /* in a row */
    i32 *order;                                   /* nets, drivers before what they lead to */
    i32 *far_first, *far_pin, *far_net, *drives;  /* by cell: sinks of large nets, and the large net that it drives */
    /* The move under way. */
    i64 number, *seen_cell, *seen_net;
    change_t changes[CHANGES];
    i32 changed, moved[MANY], old_column[MANY], old_row[MANY], count;
    i32 nets[MANY], touched;
    double fresh[MANY];
    box_t boxes[MANY];
} core_t;

static inline i32 lesser(i32 a, i32 b) { return a < b ? a : b; }
static inline i32 greater(i32 a, i32 b) { return a > b ? a : b; }

static inline uint32_t drawn(core_t *core) {
    core->random ^= core->random << 13;
    core->random ^= core->random >> 7;
    core->random ^= core->random << 17;
    return (uint32_t)(core->random >> 32);
}

static inline i32 below(core_t *core, i32 most) { return (i32)((uint64_t)drawn(core) * (uint64_t)most >> 32); }

static inline i32 tile_of(const core_t *core, i32 cell) {
    return core->d.row[cell] * (i32)core->d.width + core->d.column[cell];
}

/* Whether a wire to `pin` from `net` stays within a tile, and takes one of those that are there for that: from each register
 * to the table beside it, and from tables but two to any. */
static inline int within(const core_t *core, i32 net, i32 pin) {
    const design_t *d = &core->d;
    i32 from = d->driver[net], to = d->cell[pin], half = d->half[from];
    if (d->direct[pin] != TABLE || d->column[from] != d->column[to] || d->row[from] != d->row[to])
        return 0;
    return d->kind[from] & REGISTER ? half == d->half[to] : half != 1 && half != 6;
}

/* How long a wire takes, in units: beyond what every wire takes. */
static inline double way(i32 columns, i32 rows) {
    columns = abs(columns);
    rows = abs(rows);
    return 2.0 * (lesser(columns, NEAR) + lesser(rows, NEAR)) +
           0.7 * (greater(columns - NEAR, 0) + greater(rows - NEAR, 0));
}

/* timing.c */
void order_nets(core_t *core);
double weigh(core_t *core, double part);

/* cost.c */
void prepare(core_t *core);
double recount(core_t *core);
int accepted(core_t *core);

/* moves.c */
int step(core_t *core, i32 cell, i32 range);
