/* The write ports of LV2, where loads of LD2 meet stores of ST1 at a bank: see lv2_writes.py. */
#include "core.h"
#include <stdlib.h>
#include <string.h>

enum { NOWHERE = -1, MOST_WAITED = 2, NUMBERED = 1 << 24 };

static store_t *oldest(core_t *core, i64 engine) {
    writes_t *writes = &core->writes[engine];
    return writes->count ? &writes->stores[writes->head] : 0;
}

static void forget_oldest(writes_t *writes) {
    free(writes->stores[writes->head].banks);
    writes->head++;
    if (!--writes->count)
        writes->head = 0;
}

static i64 landed(const core_t *core) { return core->params.landed - 1; } /* from a step to the port */
static i64 behind(const core_t *core) { return core->params.axi_return + landed(core); } /* from a beat to the port */

/* A store from cycle ``start`` on; returns how many of ``engine`` have not gone by. */
EXPORT i64 caesura_lv2_store(core_t *core, i64 engine, i64 start, i64 steps) {
    writes_t *writes = &core->writes[engine];
    if (writes->head && writes->head + writes->count == writes->room) {
        memmove(writes->stores, &writes->stores[writes->head], writes->count * sizeof *writes->stores);
        writes->head = 0;
    }
    writes->stores = grown(writes->stores, &writes->room, writes->head + writes->count, sizeof *writes->stores);
    writes->stores[writes->head + writes->count++] = (store_t){start, steps, 0, 0};
    core->soonest = sooner(core->soonest, start - behind(core));
    return writes->count;
}

EXPORT void caesura_lv2_forget(core_t *core, i64 engine) {
    while (core->writes[engine].count)
        forget_oldest(&core->writes[engine]);
}

/* Whether ST1 of ``engine`` begins before ``end`` what it has not ended before ``begin``. */
static int writes_in(core_t *core, i64 engine, i64 begin, i64 end) {
    writes_t *writes = &core->writes[engine];
    for (store_t *store; (store = oldest(core, engine)) && store->start < end;) {
        if (store->start + store->steps > begin) {
            if (!store->length) {
                free(store->banks);
                i64 banks = core->told.banks(engine, writes->count, &store->length);
                store->banks = malloc(store->length * sizeof *store->banks);
                memcpy(store->banks, (const int32_t *)(uintptr_t)banks, store->length * sizeof *store->banks);
            }
            return 1;
        }
        i64 gone = store->start + store->steps;
        forget_oldest(writes);
        if ((store = oldest(core, engine))) /* one behind the other */
            store->start = later(store->start, gone);
    }
    return 0;
}

/* Whether port ``load`` must wait to write to ``bank`` at ``time``; whom it meets may have to wait, too. */
static int refused(core_t *core, i64 time, i64 load, i64 bank, uint64_t writing) {
    i64 engines = core->params.engines, ports = 2 * engines, wanted[2 * 64];
    int met = 0;
    for (i64 port = 0; port < ports; port++)
        wanted[port] = NOWHERE;
    for (i64 engine = 0; engine < engines; engine++)
        if (writing >> engine & 1 && writes_in(core, engine, time, time + 1)) {
            const store_t *store = oldest(core, engine);
            i64 place = time - store->start, here = place < store->length ? store->banks[place] : NOWHERE;
            for (i64 other = 0; other < ports; other++)
                met |= here != NOWHERE && (here == bank || here == wanted[other]);
            wanted[2 * engine] = here;
        }
    if (!met)
        return 0;
    wanted[load] = bank;
    i64 turn = core->turn;
    core->turn = (turn + 1) % ports;
    int loses = 0;
    for (i64 rank = 0; rank < ports; rank++) {
        i64 port = (turn + rank) % ports;
        for (i64 ahead = 0; ahead < rank; ahead++)
            if (wanted[port] != NOWHERE && wanted[(turn + ahead) % ports] == wanted[port]) {
                if (port == load)
                    loses = 1;
                else {
                    oldest(core, port / 2)->start++;
                    lose(&core->arenas[LV2_WRITES].ports[port], time);
                }
                break;
            }
    }
    return loses;
}

/* LD1 of ``engine`` takes a copy. */
void lv2_read(core_t *core, i64 engine, const reading_t *reading) {
    reads_t *reads = &core->reads[engine];
    reads->readings[reads->newest++ % READINGS] = *reading;
    core->read_low = sooner(core->read_low, reading->low);
    core->read_high = later(core->read_high, reading->high);
    core->read_until = later(core->read_until, reading->start + reading->length);
}

/* Whether LD1 of some engine reads a word that the burst writes whose first beat moves at ``time``, while it does. */
static int read_meanwhile(core_t *core, i64 time, i64 into, i64 beats) {
    i64 word = core->params.lv1_word, low = into / word, high = (into + beats * core->params.dram_word - 1) / word;
    i64 begin = time + behind(core);
    if (begin >= core->read_until)
        core->read_low = NEVER, core->read_high = NOBODY; /* all is over */
    if (low > core->read_high || high < core->read_low)
        return 0;
    for (i64 engine = 0; engine < core->params.engines; engine++)
        for (i64 number = 0; number < READINGS; number++) {
            const reading_t *reading = &core->reads[engine].readings[number];
            if (low <= reading->high && high >= reading->low && reading->start < begin + beats &&
                reading->start + reading->length > begin)
                return 1;
        }
    return 0;
}

/* Whether the data of the burst whose first beat moves at ``time`` and whose last is planned at ``core->end`` may be
 * held up. */
int meets_at_lv2(core_t *core, i64 time, i64 into, i64 beats) {
    return core->end >= core->soonest || read_meanwhile(core, time, into, beats);
}

/* Whether LD1 asks for ``word`` of LV2 at ``time``. */
static int asked_for(const reading_t *reading, i64 time, i64 word) {
    i64 step = time - reading->start;
    if (step < 0 || step >= reading->length || (reading->words && reading->words[step] < 0))
        return 0;
    return (reading->first + (reading->words ? reading->words[step] : step) - word) % NUMBERED == 0;
}

/* By how many cycles a write of ``word`` at ``time`` waits for reads of it: after the second nobody reads for one. */
static i64 waits_for_reads(core_t *core, i64 time, i64 word) {
    for (i64 waited = 0;; waited++) {
        int asked = 0;
        for (i64 engine = 0; engine < core->params.engines; engine++)
            for (i64 number = 0; number < READINGS; number++)
                asked |= asked_for(&core->reads[engine].readings[number], time + waited, word);
        if (!asked)
            return waited;
        if (waited == MOST_WAITED) {
            for (i64 engine = 0; engine < core->params.engines; engine++) {
                lose(&core->arenas[LV2_READS].ports[2 * engine], time + waited);
                for (i64 number = 0; number < READINGS; number++) {
                    reading_t *reading = &core->reads[engine].readings[number];
                    i64 step = time + waited - reading->start;
                    reading->start += step >= 0 && step < reading->length;
                }
            }
            return waited;
        }
    }
}

/* By how many cycles the data of the burst are held up whose first beat moves at ``time``, to byte ``into``. */
i64 held_by_lv2(core_t *core, i64 engine, i64 time, i64 into, i64 beats) {
    const params_t *p = &core->params;
    writes_t *port = &core->writes[engine];
    i64 before = port->before, latest = port->latest, begin = time + behind(core);
    i64 taken = time + p->axi_return - 1; /* when the realigner took the word before */
    uint64_t writing = 0;
    i64 many = 0, alone = NOBODY, waited = 0;
    for (i64 number = 0; number < p->engines; number++)
        if (writes_in(core, number, begin, begin + beats)) {
            writing |= (uint64_t)1 << number;
            many++;
            if (alone == NOBODY)
                alone = number;
        }
    int read = read_meanwhile(core, time, into, beats);
    if (many || read || latest >= begin) {
        for (i64 word = into; word < into + beats * p->dram_word; word += p->dram_word) {
            taken = later(taken + 1, before);
            i64 here = later(taken + landed(core), latest + 1), bank = word / p->lv1_word % p->lv2_banks;
            i64 waits = read ? waits_for_reads(core, here, word / p->lv1_word) : 0;
            waited += waits;
            here += waits;
            const store_t *store = many == 1 ? oldest(core, alone) : 0;
            i64 step = store ? here - store->start : 0;
            /* Most words meet nobody: see this at once. */
            if (!(store && (step < 0 || (step < store->length && store->banks[step] != bank))))
                while (refused(core, here, 2 * engine + 1, bank, writing))
                    here++;
            before = latest;
            latest = here;
        }
    } else {
        taken += beats;
        before = begin + beats - 2;
        latest = begin + beats - 1;
    }
    port->before = before;
    port->latest = latest;
    core->soonest = NEVER;
    for (i64 number = 0; number < p->engines; number++)
        if (oldest(core, number))
            core->soonest = sooner(core->soonest, oldest(core, number)->start - behind(core));
    i64 late = latest - (taken + landed(core));
    if (waited) /* what last words lose to stores alone is left out */
        core->landing = late;
    if (late > 0) /* the next burst may be held up by this one */
        core->soonest = sooner(core->soonest, time);
    return taken - (time + p->axi_return + beats - 1);
}
