/* The write ports of LV2, where loads of LD2 meet stores of ST1 at a bank: see lv2_writes.py. */
#include "core.h"
#include <stdlib.h>
#include <string.h>

enum { NOWHERE = -1 };

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

/* By how many cycles the data of the burst are held up whose first beat moves at ``time``, to byte ``into``. */
i64 held_by_lv2(core_t *core, i64 engine, i64 time, i64 into, i64 beats) {
    const params_t *p = &core->params;
    writes_t *port = &core->writes[engine];
    i64 before = port->before, latest = port->latest, begin = time + behind(core);
    i64 taken = time + p->axi_return - 1; /* when the realigner took the word before */
    uint64_t writing = 0;
    i64 many = 0, alone = NOBODY;
    for (i64 number = 0; number < p->engines; number++)
        if (writes_in(core, number, begin, begin + beats)) {
            writing |= (uint64_t)1 << number;
            many++;
            if (alone == NOBODY)
                alone = number;
        }
    if (many || latest >= begin) {
        for (i64 word = into; word < into + beats * p->dram_word; word += p->dram_word) {
            taken = later(taken + 1, before);
            i64 here = later(taken + landed(core), latest + 1), bank = word / p->lv1_word % p->lv2_banks;
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
    if (latest > taken + landed(core)) /* the next burst may be held up by this one */
        core->soonest = sooner(core->soonest, time);
    return taken - (time + p->axi_return + beats - 1);
}
