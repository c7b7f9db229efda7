/* A beam search for a packing below a limit, from the lowest address up. packing_beam.py says more. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

enum { PLACED = -1, SKIPS = 1 };

typedef struct {
    i64 count, steps, limit;
    const i64 *first, *past, *sizes; /* by buffer: its life, up to past, and bytes */
    const i64 *lengths, *load;       /* by step: how long it is, and the bytes alive */
} Lives;

/* Some buffers placed. tops, used, lowest: by step the end of those placed or of what they shut in, and their bytes; by
 * buffer where it may lie, or PLACED. */
typedef struct {
    uint64_t set; /* tells apart which are placed */
    i64 next;     /* the step in which one is placed next */
    i64 numbers[];
} State;

typedef struct {
    double lost;
    i64 from, skips, one; /* the state, the ends that it raises first, and the buffer that it places then */
} Move;

typedef struct {
    i64 before, one, offset;
} Placed;

static i64 *tops(State *s) { return s->numbers; }
static i64 *used(const Lives *l, State *s) { return s->numbers + l->steps; }
static i64 *lowest(const Lives *l, State *s) { return s->numbers + 2 * l->steps; }
static int open_at(const Lives *l, State *s, i64 step) { return l->load[step] > used(l, s)[step]; }
static int covers(const Lives *l, i64 one, i64 step) { return l->first[one] <= step && step < l->past[one]; }

/* Those to come lie above the ends of the steps from..to. */
static void lift(const Lives *l, State *s, i64 from, i64 to) {
    i64 *low = lowest(l, s);
    for (i64 one = 0; one < l->count; one++) {
        if (low[one] == PLACED)
            continue;
        i64 begin = l->first[one] > from ? l->first[one] : from, end = l->past[one] < to ? l->past[one] : to;
        for (i64 step = begin; step < end; step++)
            if (tops(s)[step] > low[one])
                low[one] = tops(s)[step];
    }
}

/* What lies below all that are to come in a step is lost. Returns whether those still have room. */
static int settle(const Lives *l, State *s, i64 *least) {
    i64 *low = lowest(l, s);
    for (i64 step = 0; step < l->steps; step++)
        least[step] = INT64_MAX;
    for (i64 one = 0; one < l->count; one++)
        if (low[one] != PLACED)
            for (i64 step = l->first[one]; step < l->past[one]; step++)
                least[step] = low[one] < least[step] ? low[one] : least[step];
    for (i64 step = 0; step < l->steps; step++) {
        if (!open_at(l, s, step))
            continue;
        if (tops(s)[step] < least[step])
            tops(s)[step] = least[step];
        if (tops(s)[step] + l->load[step] - used(l, s)[step] > l->limit)
            return 0;
    }
    return 1;
}

/* Of the hollows, steps of one end between higher ones, the step with the most bytes alive. */
static i64 tightest(const Lives *l, State *s) {
    i64 best = -1, *top = tops(s);
    for (i64 from = 0, to; from < l->steps; from = to) {
        to = from + 1;
        if (!open_at(l, s, from))
            continue;
        while (to < l->steps && open_at(l, s, to) && top[to] == top[from])
            to++;
        if (from && open_at(l, s, from - 1) && top[from - 1] < top[from])
            continue;
        if (to < l->steps && open_at(l, s, to) && top[to] < top[from])
            continue;
        for (i64 step = from; step < to; step++)
            if (best < 0 || l->load[step] > l->load[best])
                best = step;
    }
    return best;
}

static int place(const Lives *l, State *s, i64 one, i64 *least) {
    i64 end = lowest(l, s)[one] + l->sizes[one];
    lowest(l, s)[one] = PLACED;
    for (i64 step = l->first[one]; step < l->past[one]; step++) {
        tops(s)[step] = end;
        used(l, s)[step] += l->sizes[one];
    }
    lift(l, s, l->first[one], l->past[one]);
    return settle(l, s, least);
}

/* Leave the next step's end to nobody: raise it to the lowest place that another may have there. */
static int skip(const Lives *l, State *s, i64 *least) {
    i64 at = s->next, from = at, to = at + 1, end = INT64_MAX, *low = lowest(l, s), top = tops(s)[at];
    for (i64 one = 0; one < l->count; one++)
        if (low[one] == top && covers(l, one, at)) {
            from = l->first[one] < from ? l->first[one] : from;
            to = l->past[one] > to ? l->past[one] : to;
        }
    for (i64 one = 0; one < l->count; one++) {
        if (low[one] == PLACED || l->first[one] >= to || l->past[one] <= from)
            continue;
        i64 other = covers(l, one, at) ? low[one] : low[one] + l->sizes[one];
        end = other > top && other < end ? other : end;
    }
    if (end == INT64_MAX || end + l->load[at] - used(l, s)[at] > l->limit)
        return 0;
    tops(s)[at] = end;
    lift(l, s, at, at + 1);
    if (!settle(l, s, least))
        return 0;
    s->next = tightest(l, s);
    return 1;
}

/* The bytes that are lost, for one that is placed. */
static double lost(const Lives *l, State *s) {
    i64 below = 0, placed = 0;
    for (i64 step = 0; step < l->steps; step++) {
        i64 here = used(l, s)[step];
        below += open_at(l, s, step) ? l->lengths[step] * (tops(s)[step] - here) : 0;
        placed += l->lengths[step] * here;
    }
    return (double)below / (double)placed;
}

static int order(const void *a, const void *b) {
    const Move *x = a, *y = b;
    if (x->lost != y->lost)
        return x->lost < y->lost ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->skips != y->skips)
        return x->skips < y->skips ? -1 : 1;
    return (x->one > y->one) - (x->one < y->one);
}

static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The moves of a state, behind those found so far. */
static i64 moves(const Lives *l, State *base, State *work, i64 bytes, i64 from, i64 *nodes, Move *found, i64 *least) {
    i64 number = 0;
    for (i64 skips = 0; skips <= SKIPS; skips++) {
        if (skips && !skip(l, base, least))
            break;
        for (i64 one = 0; one < l->count; one++) {
            if (lowest(l, base)[one] != tops(base)[base->next] || !covers(l, one, base->next))
                continue;
            if (--*nodes < 0)
                return number;
            memcpy(work, base, bytes);
            if (place(l, work, one, least))
                found[number++] = (Move){lost(l, work), from, skips, one};
        }
    }
    return number;
}

static int search(const Lives *l, i64 width, i64 nodes, State **now, State **then, Move *found, Placed *path,
                  i64 *least, i64 bytes) {
    State *work = then[width], *base = now[width];
    i64 states = 1;
    for (i64 depth = 0; depth < l->count; depth++) {
        i64 number = 0, kept = 0;
        for (i64 from = 0; from < states; from++) {
            memcpy(base, now[from], bytes);
            number += moves(l, base, work, bytes, from, &nodes, found + number, least);
        }
        if (nodes < 0)
            return 0;
        qsort(found, number, sizeof(Move), order);
        for (i64 at = 0; at < number && kept < width; at++) {
            State *to = then[kept];
            i64 one = found[at].one, double_of = 0;
            memcpy(to, now[found[at].from], bytes);
            for (i64 skips = 0; skips < found[at].skips; skips++)
                skip(l, to, least);
            path[depth * width + kept] = (Placed){found[at].from, one, lowest(l, to)[one]};
            place(l, to, one, least);
            to->set += mixed((uint64_t)one + 1);
            while (double_of < kept && to->set != then[double_of]->set)
                double_of++;
            if (double_of < kept)
                continue;
            to->next = tightest(l, to);
            kept++;
        }
        if (!kept)
            return 0;
        State **other = now;
        now = then, then = other, states = kept;
    }
    return 1;
}

__attribute__((visibility("default"))) i64 caesura_beam(
    i64 count, i64 steps, i64 limit, i64 width, i64 nodes, const i64 *first, const i64 *past, const i64 *sizes,
    const i64 *bases, const i64 *lengths, const i64 *load, i64 *offsets) {
    Lives lives = {count, steps, limit, first, past, sizes, lengths, load};
    i64 bytes = sizeof(State) + sizeof(i64) * (2 * steps + count), states = 2 * (width + 1);
    char *memory = calloc(states, bytes);
    State **all = malloc(sizeof(State *) * states);
    Move *found = malloc(sizeof(Move) * width * count * (SKIPS + 1));
    Placed *path = malloc(sizeof(Placed) * width * count);
    i64 *least = malloc(sizeof(i64) * steps), done = 0;
    if (memory && all && found && path && least) {
        for (i64 at = 0; at < states; at++)
            all[at] = (State *)(memory + at * bytes);
        memcpy(lowest(&lives, all[0]), bases, sizeof(i64) * count);
        if (settle(&lives, all[0], least)) {
            all[0]->next = tightest(&lives, all[0]);
            done = search(&lives, width, nodes, all, all + width + 1, found, path, least, bytes);
        }
        for (i64 depth = count - 1, at = 0; done && depth >= 0; depth--) {
            Placed one = path[depth * width + at];
            offsets[one.one] = one.offset;
            at = one.before;
        }
    }
    free(memory), free(all), free(found), free(path), free(least);
    return done;
}
