/* A search for a packing below a limit, buffer by buffer from the lowest address up. packing_search.py says more. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

typedef struct {
    i64 limit, nodes;                  /* the nodes that may still be looked at */
    const i64 *first, *past, *sizes;   /* by buffer: its life, up to past, and bytes */
    i64 *lowest, *offsets, *top, *rest; /* by buffer: where it may lie, lies; by step: end of those placed, bytes to come */
} Search;

enum { NO, YES, SPENT };

static int search(Search *s, const i64 *left, i64 count, i64 floor, i64 last);

/* Those left, in order of their first step, fall apart where no life goes on: each part is searched alone. */
static int parts(Search *s, const i64 *left, i64 count, i64 floor, i64 last) {
    for (i64 from = 0, to; from < count; from = to) {
        i64 past = s->past[left[from]];
        for (to = from; to < count && s->first[left[to]] < past; to++)
            if (s->past[left[to]] > past)
                past = s->past[left[to]];
        int found = search(s, left + from, to - from, floor, last);
        if (found != YES)
            return found;
    }
    return YES;
}

/* Whether those to come, none of which may lie below floor, still have room in each step. */
static int fits(const Search *s, i64 from, i64 to, i64 floor) {
    for (i64 step = from; step < to; step++)
        if (s->rest[step] && (s->top[step] > floor ? s->top[step] : floor) + s->rest[step] > s->limit)
            return 0;
    return 1;
}

static int before(const Search *s, i64 a, i64 b) {
    return s->lowest[a] != s->lowest[b] ? s->lowest[a] < s->lowest[b] : a < b;
}

static int alike(const Search *s, i64 a, i64 b) {
    return s->first[a] == s->first[b] && s->past[a] == s->past[b] && s->sizes[a] == s->sizes[b] &&
           s->lowest[a] == s->lowest[b];
}

/* The next one lies at its lowest place, not below the last, nor above a place that has room for another left. */
static i64 choices(const Search *s, const i64 *left, i64 count, i64 floor, i64 last, i64 *chosen) {
    i64 least = INT64_MAX, number = 0;
    for (i64 at = 0; at < count; at++) {
        i64 end = s->lowest[left[at]] + s->sizes[left[at]];
        least = end < least ? end : least;
    }
    for (i64 at = 0; at < count; at++) {
        i64 one = left[at], low = s->lowest[one], place = number;
        if (low >= least || low < floor || (low == floor && one < last))
            continue;
        for (; place && before(s, one, chosen[place - 1]); place--)
            chosen[place] = chosen[place - 1];
        chosen[place] = one;
        number++;
    }
    return number;
}

static void put(Search *s, i64 one, i64 end) {
    for (i64 step = s->first[one]; step < s->past[one]; step++) {
        s->rest[step] -= s->sizes[one];
        s->top[step] = end;
    }
    s->offsets[one] = s->lowest[one];
}

static int search(Search *s, const i64 *left, i64 count, i64 floor, i64 last) {
    if (--s->nodes < 0)
        return SPENT;
    i64 from = s->first[left[0]], to = from;
    for (i64 at = 0; at < count; at++)
        to = s->past[left[at]] > to ? s->past[left[at]] : to;
    i64 steps = to - from;
    i64 *rests = malloc(sizeof(i64) * (2 * steps + 3 * count));
    if (!rests)
        return SPENT;
    i64 *tops = rests + steps, *lows = tops + steps, *chosen = lows + count, *others = chosen + count;
    memcpy(rests, s->rest + from, sizeof(i64) * steps);
    memcpy(tops, s->top + from, sizeof(i64) * steps);
    for (i64 at = 0; at < count; at++)
        lows[at] = s->lowest[left[at]];
    i64 number = choices(s, left, count, floor, last, chosen);
    int found = NO;
    for (i64 at = 0; at < number && found == NO; at++) {
        i64 one = chosen[at], low = s->lowest[one], end = low + s->sizes[one];
        if (at && alike(s, one, chosen[at - 1]))
            continue;
        put(s, one, end);
        if (fits(s, from, to, low)) {
            i64 more = 0;
            for (i64 b = 0; b < count; b++) {
                i64 other = left[b];
                if (other == one)
                    continue;
                others[more++] = other;
                if (s->first[other] < s->past[one] && s->first[one] < s->past[other] && s->lowest[other] < end)
                    s->lowest[other] = end;
            }
            found = parts(s, others, more, low, one);
        }
        if (found == YES)
            break;
        memcpy(s->rest + from, rests, sizeof(i64) * steps);
        memcpy(s->top + from, tops, sizeof(i64) * steps);
        for (i64 b = 0; b < count; b++)
            s->lowest[left[b]] = lows[b];
    }
    free(rests);
    return found;
}

__attribute__((visibility("default"))) i64 caesura_canonical(
    i64 count, i64 steps, i64 limit, i64 nodes, const i64 *first, const i64 *past, const i64 *sizes, const i64 *left,
    i64 *lowest, i64 *offsets, i64 *top, i64 *rest) {
    Search s = {limit, nodes, first, past, sizes, lowest, offsets, top, rest};
    for (i64 one = 0; one < count; one++) {
        if (lowest[one] + sizes[one] > limit)
            return 0;
        for (i64 step = first[one]; step < past[one]; step++)
            rest[step] += sizes[one];
    }
    return fits(&s, 0, steps, 0) && parts(&s, left, count, 0, -1) == YES;
}
