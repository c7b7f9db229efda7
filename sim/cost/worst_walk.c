/* The walk of the bound on pauses: times at which instructions have ended at the latest, in cycles since the pause. */
#include <stdint.h>

enum { LD2, ST2, LD1, ST1, LD0, MAC, VEC, UNITS }; /* as in hw/contract/isa.py */
enum { NONE = -1, SEMAPHORES = 32 };
enum { CIRCULAR = -1 };

typedef int64_t i64;

/* The layouts of machine_t, steps_t, beside_t and between_t are those of worst_walk.py. */
typedef struct {
    i64 depth, per_burst, in_flight, issue, to_head, grant;
} machine_t;

/* By number of a step: its unit (NONE: the executor), semaphores, and words of parameters that a VEC reads. */
typedef struct {
    const i64 *unit, *waits, *signals, *parameters;
} steps_t;

/* What rivals cost: cycles before the first instruction of the executor, for each burst of its fetch, of other traffic
 * at the beginning and for each instruction; whether VEC takes words from loads and stores one by one; cycles and latency of steps. */
typedef struct {
    i64 first, fetch, debt, insn_debt, reads_a;
    const i64 *cycles, *latency;
} beside_t;

/* Numbers of the steps, the first ``queued`` of which were issued before; whether these run; counts of the semaphores;
 * when the LD2 unit rests. ``space``: (SEMAPHORES + 2 * UNITS) * count numbers to work in. */
typedef struct {
    i64 count, queued, loaded;
    const i64 *step, *runs, *counts;
    i64 *space;
} between_t;

typedef struct {
    i64 *times, head, tail, zeros;
} semaphore_t;

typedef struct {
    const machine_t *machine;
    const steps_t *steps;
    const beside_t *beside;
    semaphore_t semaphores[SEMAPHORES];
    i64 free[UNITS], debt[UNITS], *done[UNITS], *taken[UNITS], given[UNITS];
} walk_t;

static i64 later(i64 a, i64 b) { return a > b ? a : b; }

/* Take one count of each of ``waits``; returns when the last was signalled, or CIRCULAR. */
static i64 take(walk_t *walk, uint32_t waits) {
    i64 latest = 0;
    for (; waits; waits &= waits - 1) {
        semaphore_t *one = &walk->semaphores[__builtin_ctz(waits)];
        if (one->zeros > 0)
            one->zeros--;
        else if (one->head == one->tail)
            return CIRCULAR;
        else
            latest = later(latest, one->times[one->head++]);
    }
    return latest;
}

static void give(walk_t *walk, uint32_t signals, i64 time) {
    for (; signals; signals &= signals - 1) {
        semaphore_t *one = &walk->semaphores[__builtin_ctz(signals)];
        one->times[one->tail++] = time;
    }
}

/* Other traffic of this engine may hold its loads and stores up. */
static void charge(walk_t *walk, i64 cycles) {
    walk->debt[LD2] += cycles;
    walk->debt[ST2] += cycles;
}

static int run(walk_t *walk, i64 step, i64 issued) {
    const machine_t *machine = walk->machine;
    const beside_t *beside = walk->beside;
    i64 unit = walk->steps->unit[step], *done = walk->done[unit], count = walk->given[unit];
    i64 ready = take(walk, (uint32_t)walk->steps->waits[step]);
    if (ready == CIRCULAR)
        return 0;
    ready = later(issued ? issued + machine->to_head : 0, ready) + machine->grant;
    if (count >= machine->in_flight)
        ready = later(ready, done[count - machine->in_flight] + machine->issue);
    i64 begins = later(ready, walk->free[unit]);
    i64 free = begins + beside->cycles[step] + walk->debt[unit];
    walk->free[unit] = free;
    walk->debt[unit] = 0;
    if (unit == VEC && beside->reads_a) {
        walk->debt[LD0] += walk->steps->parameters[step];
        walk->debt[ST1] += walk->steps->parameters[step];
    }
    i64 *taken = walk->taken[unit];
    taken[count] = begins + beside->latency[step];
    done[count] = free + beside->latency[step];
    if (count > 0) {
        taken[count] = later(taken[count], taken[count - 1]);
        done[count] = later(done[count], done[count - 1] + beside->cycles[step]);
    }
    walk->given[unit] = count + 1;
    give(walk, (uint32_t)walk->steps->signals[step], done[count]);
    return 1;
}

/* When all units are idle, the executor is at the end and the loader rests; CIRCULAR if a step waits for nothing. */
i64 caesura_walk(const machine_t *machine, const steps_t *steps, const beside_t *beside, const between_t *between) {
    walk_t walk = {.machine = machine, .steps = steps, .beside = beside};
    i64 *space = between->space, issued = 0, fetched = 0, end = between->loaded;
    for (int i = 0; i < SEMAPHORES; i++, space += between->count) {
        walk.semaphores[i].times = space;
        walk.semaphores[i].zeros = between->counts[i];
    }
    for (int i = 0; i < UNITS; i++, space += 2 * between->count) {
        walk.done[i] = space;
        walk.taken[i] = space + between->count;
    }
    charge(&walk, beside->debt);
    walk.free[LD2] = between->loaded;
    for (i64 number = 0; number < between->count; number++) {
        i64 step = between->step[number], unit = steps->unit[step];
        if (unit == NONE)
            continue;
        if (number < between->queued) {
            if (between->runs[number]) {
                if (!run(&walk, step, 0))
                    return CIRCULAR;
            } else {
                give(&walk, (uint32_t)steps->signals[step], 0);
                if (take(&walk, (uint32_t)steps->waits[step]) == CIRCULAR)
                    return CIRCULAR;
            }
            continue;
        }
        i64 bursts = (fetched++ + machine->per_burst - 1) / machine->per_burst;
        issued = later(issued + machine->issue, beside->first + bursts * beside->fetch);
        i64 given = walk.given[unit];
        if (given >= machine->depth)
            issued = later(issued, walk.taken[unit][given - machine->depth] + machine->issue);
        charge(&walk, beside->insn_debt);
        if (!run(&walk, step, issued))
            return CIRCULAR;
    }
    end = later(end, issued);
    for (int i = 0; i < UNITS; i++)
        if (walk.given[i])
            end = later(end, walk.done[i][walk.given[i] - 1]);
    return end;
}
