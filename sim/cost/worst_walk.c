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

/* By number of a step: its unit (NONE: the executor), semaphores, and words for each of the clients of scratchpads. */
typedef struct {
    const i64 *unit, *waits, *signals, *words;
} steps_t;

/* What rivals cost: cycles before the first instruction of the executor, with and without what other traffic takes at
 * the beginning, and for each burst of its fetch; that traffic, and what each instruction adds to it; words that units
 * wait for in all if they have nothing to do with DRAM, if they have, and all of them, and the clients (a bit each) whose
 * words are among these wherever a chain is; cycles and latency of steps. */
typedef struct {
    i64 first, late, fetch, debt, insn_debt, lost_on_chip, lost_by_dram, lost, spared;
    const i64 *cycles, *latency;
} beside_t;

/* Numbers of the steps, the first ``queued`` of which were issued before; whether these run; counts of the semaphores;
 * when the LD2 unit rests (0: it may work). ``space``: (SEMAPHORES + 2 * UNITS) * count times to work in. */
typedef struct {
    i64 count, queued, loaded;
    const i64 *step, *runs, *counts;
    void *space;
} between_t;

/* How a chain of events got here. What other traffic takes from the DRAM is known in all, not when: it counts once for
 * a chain that passes a unit of the DRAM, and conflicts at the scratchpads count once for one that passes a unit which
 * has any. So the longest chains are known apart, by what is to be added: a chain of LOSING may have passed any units
 * on chip, and one of WAITED has passed a unit of the DRAM, and has in it what other traffic takes. */
enum { LOSING = 1, WAITED = 2, CHAINS = 4 };
enum { CLIENTS = 10 };
static const i64 NO_CHAIN = -((i64)1 << 60);

typedef struct {
    i64 by[CHAINS];
} when_t;

typedef struct {
    when_t *times;
    i64 head, tail, zeros;
} semaphore_t;

typedef struct {
    const machine_t *machine;
    const steps_t *steps;
    const beside_t *beside;
    i64 debt;
    semaphore_t semaphores[SEMAPHORES];
    when_t free[UNITS], *done[UNITS], *taken[UNITS];
    i64 given[UNITS];
} walk_t;

static const when_t PAUSE = {{0, 0, NO_CHAIN, NO_CHAIN}}, NEVER = {{NO_CHAIN, NO_CHAIN, NO_CHAIN, NO_CHAIN}};

static when_t later(when_t a, when_t b) {
    for (int i = 0; i < CHAINS; i++)
        if (b.by[i] > a.by[i])
            a.by[i] = b.by[i];
    return a;
}

static when_t after(when_t a, i64 cycles) {
    for (int i = 0; i < CHAINS; i++)
        a.by[i] += cycles;
    return a;
}

/* Chains through ``unit`` that ended there at ``time``. */
static when_t through(const walk_t *walk, i64 unit, when_t time) {
    if (unit == LD2 || unit == ST2)
        for (int i = 0; i < WAITED; i++)
            time.by[i | WAITED] = time.by[i] + walk->debt; /* the longest, and all that can have held it up */
    else if (unit != MAC)
        time.by[0] = time.by[WAITED] = NO_CHAIN;
    return time;
}

/* ``time`` and the cycles of a step. A chain through it is not held up by the words of the step itself. */
static when_t worked(const walk_t *walk, i64 step, when_t time) {
    i64 own = 0;
    for (uint32_t spared = (uint32_t)walk->beside->spared; spared; spared &= spared - 1)
        own += walk->steps->words[CLIENTS * step + __builtin_ctz(spared)];
    time = after(time, walk->beside->cycles[step]);
    for (int i = LOSING; i < CHAINS; i += WAITED)
        time.by[i] -= own;
    return time;
}

/* Take one count of each of ``waits``; ``latest``: when the last was signalled, if that is later. CIRCULAR if one was not. */
static int take(walk_t *walk, uint32_t waits, when_t *latest) {
    for (; waits; waits &= waits - 1) {
        semaphore_t *one = &walk->semaphores[__builtin_ctz(waits)];
        if (one->zeros > 0)
            one->zeros--;
        else if (one->head == one->tail)
            return CIRCULAR;
        else
            *latest = later(*latest, one->times[one->head++]);
    }
    return 0;
}

static void give(walk_t *walk, uint32_t signals, when_t time) {
    for (; signals; signals &= signals - 1) {
        semaphore_t *one = &walk->semaphores[__builtin_ctz(signals)];
        one->times[one->tail++] = time;
    }
}

/* Run a step that the executor issued at ``issued``, or before the pause. */
static int run(walk_t *walk, i64 step, when_t issued) {
    const machine_t *machine = walk->machine;
    i64 latency = walk->beside->latency[step];
    i64 unit = walk->steps->unit[step], count = walk->given[unit];
    when_t ready = issued, *done = walk->done[unit], *taken = walk->taken[unit];
    if (take(walk, (uint32_t)walk->steps->waits[step], &ready) == CIRCULAR)
        return CIRCULAR;
    ready = after(ready, machine->grant);
    if (count >= machine->in_flight)
        ready = later(ready, after(done[count - machine->in_flight], machine->issue));
    when_t begins = later(ready, walk->free[unit]);
    when_t ends = walk->free[unit] = through(walk, unit, worked(walk, step, begins));
    taken[count] = through(walk, unit, after(begins, latency));
    done[count] = after(ends, latency);
    if (count > 0) {
        taken[count] = later(taken[count], taken[count - 1]);
        done[count] = later(done[count], through(walk, unit, worked(walk, step, done[count - 1])));
    }
    walk->given[unit] = count + 1;
    give(walk, (uint32_t)walk->steps->signals[step], done[count]);
    return 0;
}

/* When all units are idle, the executor is at the end and the loader rests, and conflicts have been counted; CIRCULAR
 * if a step waits for nothing. */
i64 caesura_walk(const machine_t *machine, const steps_t *steps, const beside_t *beside, const between_t *between) {
    walk_t walk = {.machine = machine, .steps = steps, .beside = beside, .debt = beside->debt};
    when_t *space = between->space, issued = PAUSE, end = PAUSE, ended = PAUSE;
    i64 fetched = 0;
    for (int i = 0; i < SEMAPHORES; i++, space += between->count) {
        walk.semaphores[i].times = space;
        walk.semaphores[i].zeros = between->counts[i];
    }
    for (int i = 0; i < UNITS; i++, space += 2 * between->count) {
        walk.done[i] = space;
        walk.taken[i] = space + between->count;
        walk.free[i] = PAUSE;
    }
    if (between->loaded)
        end = walk.free[LD2] = through(&walk, LD2, after(PAUSE, between->loaded));
    for (i64 number = 0; number < between->count; number++) {
        i64 step = between->step[number], unit = steps->unit[step];
        if (unit == NONE)
            continue;
        if (number < between->queued) {
            if (between->runs[number]) {
                if (run(&walk, step, PAUSE) == CIRCULAR)
                    return CIRCULAR;
            } else {
                give(&walk, (uint32_t)steps->signals[step], NEVER);
                if (take(&walk, (uint32_t)steps->waits[step], &ended) == CIRCULAR)
                    return CIRCULAR;
            }
            continue;
        }
        i64 bursts = (fetched++ + machine->per_burst - 1) / machine->per_burst * beside->fetch;
        when_t here = {{beside->first + bursts, beside->first + bursts, beside->late + bursts, beside->late + bursts}};
        issued = later(after(issued, machine->issue), here);
        i64 given = walk.given[unit];
        if (given >= machine->depth)
            issued = later(issued, after(walk.taken[unit][given - machine->depth], machine->issue));
        walk.debt += beside->insn_debt;
        if (run(&walk, step, after(issued, machine->to_head)) == CIRCULAR)
            return CIRCULAR;
    }
    end = later(end, issued);
    for (int i = 0; i < UNITS; i++)
        if (walk.given[i])
            end = later(end, walk.done[i][walk.given[i] - 1]);
    i64 last = 0, lost[CHAINS] = {0, beside->lost_on_chip, beside->lost_by_dram, beside->lost};
    for (int i = 0; i < CHAINS; i++)
        if (end.by[i] + lost[i] > last)
            last = end.by[i] + lost[i];
    return last;
}
