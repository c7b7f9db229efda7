/* How long the layers of a region take side by side: region_time.py says what it means. */
#include <stdint.h>

#pragma STDC FP_CONTRACT OFF /* sums and products are rounded as in Python */

enum { LOAD, ARRAYS, VECTOR, STORE, STAGES };
enum { NOBODY = -1 };

typedef int64_t i64;

static const double UNKNOWN = 1e300; /* when something can begin, while that is not known */

/* Of the layout of region_time.py. By member: tiles, the members that it reads as bits, and how many of their
 * tiles it reads beyond its own; by member and unit: cycles. ``around``: cycles of a tile beside its work. The rest is to
 * work in: by member one number each in ``before`` and ``first``, and in ``levels``; by member and unit one in ``done``,
 * ``work``, ``begins`` and ``rank``; by member, unit and tile one in ``ends``. */
typedef struct {
    i64 count, around;
    const i64 *tiles, *reads, *beyond;
    const double *busy;
    i64 *before, *first, *done;
    double *levels, *work, *begins, *rank, *ends;
} region_t;

static double *ends_of(const region_t *region, i64 number, i64 stage) {
    return region->ends + region->first[number] + stage * region->tiles[number];
}

/* When the next tile of a member could begin on a unit, as far as others are concerned. */
static double start_of(const region_t *region, i64 number, i64 stage) {
    const i64 *tiles = region->tiles, *done = region->done, *mine = done + STAGES * number;
    i64 tile = mine[stage];
    double start = 0;
    if (stage != STORE && tile >= 2) {
        if (mine[stage + 1] < tile - 1)
            return UNKNOWN;
        start = ends_of(region, number, stage + 1)[tile - 2];
    }
    if (stage != LOAD) {
        if (mine[stage - 1] <= tile)
            return UNKNOWN;
        double made = ends_of(region, number, stage - 1)[tile];
        return made > start ? made : start;
    }
    for (uint64_t left = (uint64_t)region->reads[number]; left; left &= left - 1) {
        i64 source = __builtin_ctzll(left);
        i64 wanted = ((tile + 1) * tiles[source] + tiles[number] - 1) / tiles[number] - 1 + region->beyond[number];
        i64 last = wanted < tiles[source] ? wanted : tiles[source] - 1;
        if (done[STAGES * source + STORE] <= last)
            return UNKNOWN;
        double stored = ends_of(region, source, STORE)[last];
        start = stored > start ? stored : start;
    }
    i64 before = region->before[number];
    if (tile < 2 && before != NOBODY) {
        i64 stage_before = region->work[STAGES * before + ARRAYS] > 0 ? ARRAYS : VECTOR;
        if (done[STAGES * before + stage_before] < tiles[before] - 1 + tile)
            return UNKNOWN;
        double computed = ends_of(region, before, stage_before)[tiles[before] - 2 + tile];
        start = computed > start ? computed : start;
    }
    return start;
}

/* The longest of the units. */
static double most(const double *units) {
    double found = 0;
    for (i64 unit = 0; unit < STAGES; unit++)
        found = units[unit] > found ? units[unit] : found;
    return found;
}

/* Work of tiles, who had whose buffers before, and the cycles of the longest chain of members from each on. */
static void prepare(region_t *region) {
    i64 last[2] = {NOBODY, NOBODY}, place = 0;
    for (i64 number = 0; number < region->count; number++) {
        const double *busy = region->busy + STAGES * number;
        for (i64 unit = 0; unit < STAGES; unit++)
            region->work[STAGES * number + unit] = busy[unit] ? busy[unit] / region->tiles[number] + region->around : 0;
        i64 kind = busy[ARRAYS] > 0;
        region->before[number] = last[kind];
        last[kind] = number;
        region->levels[number] = region->tiles[number] * most(region->work + STAGES * number);
        region->first[number] = place;
        place += STAGES * region->tiles[number];
    }
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

/* Cycles until the last result is stored. */
double caesura_side_by_side(region_t *region) {
    i64 entries = STAGES * region->count, waiting = entries;
    double free[STAGES] = {0};
    prepare(region);
    for (i64 entry = 0; entry < entries; entry++) {
        region->done[entry] = 0;
        region->rank[entry] = -region->levels[entry / STAGES];
    }
    for (i64 entry = 0; entry < entries; entry++)
        region->begins[entry] = start_of(region, entry / STAGES, entry % STAGES);
    while (waiting) {
        double first = UNKNOWN, least = 0;
        i64 chosen = NOBODY;
        for (i64 entry = 0; entry < entries; entry++) {
            i64 stage = entry % STAGES;
            if (region->done[entry] == region->tiles[entry / STAGES])
                continue;
            double start = region->begins[entry];
            if (start < free[stage] && region->work[entry] > 0)
                start = free[stage];
            if (start < first || (start == first && first < UNKNOWN && region->rank[entry] < least)) {
                first = start;
                least = region->rank[entry];
                chosen = entry;
            }
        }
        if (chosen == NOBODY)
            return UNKNOWN;
        i64 number = chosen / STAGES, stage = chosen % STAGES;
        double end = first + region->work[chosen], step = most(region->work + STAGES * number);
        free[stage] = end > free[stage] ? end : free[stage];
        ends_of(region, number, stage)[region->done[chosen]++] = end;
        region->rank[chosen] = (double)region->done[chosen] * step - region->levels[number];
        if (region->done[chosen] == region->tiles[number])
            waiting--;
        else
            region->begins[chosen] = start_of(region, number, stage);
        for (i64 entry = 0; entry < entries; entry++)
            if (region->begins[entry] == UNKNOWN && region->done[entry] < region->tiles[entry / STAGES])
                region->begins[entry] = start_of(region, entry / STAGES, entry % STAGES);
    }
    return most(free);
}
