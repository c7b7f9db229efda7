/* How long the layers of a region take side by side: region_time.py says what it means. */
#include "schedule.h"

#pragma STDC FP_CONTRACT OFF /* sums and products are rounded as in Python */

enum { LOAD, ARRAYS, VECTOR, STORE, STAGES };
enum { NOBODY = -1 };

/* Of the layout of region_time.py. By member: tiles, the members that it reads as bits, and how many of their tiles it
 * reads beyond its own; by member and unit: cycles. ``around``: cycles of a tile beside its work. The rest is to work
 * in: by member who had its buffers ``before``, and the ``levels``; the tasks of the schedule, one for each tile on each
 * unit, and in ``lists`` their needs. */
typedef struct {
    i64 count, around;
    const i64 *tiles, *reads, *beyond;
    const double *busy;
    i64 *before, *unit, *first, *need_first, *needs, *order, *next, *looked;
    double *levels, *work, *begin, *cycles, *rank, *patience, *start, *end;
} region_t;

/* The longest of the units. */
static double most(const double *units) {
    double found = 0;
    for (i64 unit = 0; unit < STAGES; unit++)
        found = units[unit] > found ? units[unit] : found;
    return found;
}

/* Work of tiles, who had whose buffers before, and the cycles of the longest chain of members from each on. */
static void prepare(const region_t *region) {
    i64 last[2] = {NOBODY, NOBODY}, place = 0;
    for (i64 number = 0; number < region->count; number++) {
        const double *busy = region->busy + STAGES * number;
        for (i64 unit = 0; unit < STAGES; unit++) {
            i64 queue = STAGES * number + unit;
            region->work[queue] = busy[unit] ? busy[unit] / region->tiles[number] + region->around : 0;
            region->unit[queue] = unit;
            region->first[queue] = place;
            place += region->tiles[number];
        }
        i64 kind = busy[ARRAYS] > 0;
        region->before[number] = last[kind];
        last[kind] = number;
        region->levels[number] = region->tiles[number] * most(region->work + STAGES * number);
    }
    region->first[STAGES * region->count] = place;
    for (i64 number = region->count - 1; number >= 0; number--) {
        uint64_t sources = (uint64_t)region->reads[number];
        if (region->before[number] != NOBODY)
            sources |= 1ull << region->before[number];
        for (; sources; sources &= sources - 1) {
            i64 source = __builtin_ctzll(sources);
            double alone = region->tiles[source] * most(region->work + STAGES * source);
            double level = alone + region->levels[number];
            region->levels[source] = level > region->levels[source] ? level : region->levels[source];
        }
    }
}

/* Append what a tile of a member waits for on a unit to the ``count`` needs so far; returns how many they are then. */
static i64 needs_of(const region_t *region, i64 number, i64 stage, i64 tile, i64 count) {
    const i64 *tiles = region->tiles, *first = region->first, *mine = first + STAGES * number;
    if (stage != STORE && tile >= 2) /* two buffers ahead of the next unit */
        region->needs[count++] = mine[stage + 1] + tile - 2;
    if (stage != LOAD) {
        region->needs[count++] = mine[stage - 1] + tile;
        return count;
    }
    for (uint64_t left = (uint64_t)region->reads[number]; left; left &= left - 1) {
        i64 source = __builtin_ctzll(left);
        i64 wanted = ((tile + 1) * tiles[source] + tiles[number] - 1) / tiles[number] - 1 + region->beyond[number];
        i64 last = wanted < tiles[source] ? wanted : tiles[source] - 1;
        region->needs[count++] = first[STAGES * source + STORE] + last;
    }
    i64 before = region->before[number];
    if (tile < 2 && before != NOBODY) {
        i64 stage_before = region->work[STAGES * before + ARRAYS] > 0 ? ARRAYS : VECTOR;
        region->needs[count++] = first[STAGES * before + stage_before] + tiles[before] - 2 + tile;
    }
    return count;
}

/* Cycles until the last of ``tasks`` ends: of two schedules, of which one waits for a short task, up to half of the time
 * of a long one that could start before it. So tiles of a convolution leave the accumulators among those of a long
 * element-wise layer. */
static double scheduled(const region_t *region, i64 tasks) {
    schedule_t schedule = {
        .queues = STAGES * region->count, .unit = region->unit, .first = region->first,
        .need_first = region->need_first, .needs = region->needs, .cycles = region->cycles, .rank = region->rank,
        .start = region->start, .end = region->end, .order = region->order, .next = region->next,
        .looked = region->looked, .begin = region->begin,
    };
    double best = 0;
    for (int patient = 0; patient < 2; patient++) {
        double last = 0;
        schedule.patience = patient ? region->patience : 0;
        caesura_list_schedule(&schedule);
        for (i64 task = 0; task < tasks; task++)
            last = region->end[task] > last ? region->end[task] : last;
        best = patient && best < last ? best : last;
    }
    return best;
}

/* Cycles until the last result is stored. */
double caesura_side_by_side(const region_t *region) {
    i64 task = 0, needs = 0;
    prepare(region);
    for (i64 number = 0; number < region->count; number++) {
        double step = most(region->work + STAGES * number);
        for (i64 stage = 0; stage < STAGES; stage++)
            for (i64 tile = 0; tile < region->tiles[number]; tile++, task++) {
                region->cycles[task] = region->work[STAGES * number + stage];
                region->patience[task] = region->cycles[task] / 2;
                region->rank[task] = (double)tile * step - region->levels[number];
                region->need_first[task] = needs;
                needs = needs_of(region, number, stage, tile, needs);
            }
    }
    region->need_first[task] = needs;
    return scheduled(region, task);
}
