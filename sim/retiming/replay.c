/* When the moments of a run are: see dependencies.py for what they are, sim/model/dram.py for the memory. */
#include <stdint.h>

enum { OFFERED, CHOOSE, DUE, ENDED };
enum { QUEUE = 1024, FULL = 100, PORTS = 64, NONE = -1 };
#define LATE ((int64_t)1 << 60) /* more than there are events, or cycles */
#define NEVER LATE

/* The layouts of dram_t, run_t and space_t are those of replay.py. */
typedef struct {
    int64_t latency, row_miss, bandwidth, interval, closed, queue_bursts, stage, queued, write_buffered, banks;
} dram_t;

/* A graph: edges out of node v are first[v] .. first[v + 1] - 1. Of each burst: the nodes in which it is offered, its
 * address is taken, and its last beat moves; its client, direction, bank, row and beats; for how many steps of its
 * client's realigner it is held, and for how many cycles by LV2, as recorded; and how many cycles before it is offered
 * the memory knows of it. */
typedef struct {
    int64_t nodes, bursts;
    const int64_t *first;
    const int32_t *target;
    const double *lag, *late;
    const int32_t *sources;
    const int32_t *burst_of; /* the burst that is offered at a node, or -1 */
    const int32_t *taken, *ended, *port, *bank, *row, *beats, *pause, *held;
    const uint8_t *write, *early;
} run_t;

typedef struct {
    int64_t time, number;
    int32_t kind, subject;
} event_t;

typedef struct {
    int32_t burst;
    int64_t due;
} queued_t;

/* A request, and since when. */
typedef struct {
    int32_t burst;
    int64_t since;
} waiting_t;

/* What a replay works in: as many of each as there are nodes, nodes, 4 * bursts + 8, and banks. */
typedef struct {
    double *time;
    int32_t *missing, *ready;
    event_t *heap;
    int64_t *row, *free, *epoch;
} space_t;

typedef struct {
    const dram_t *p;
    const run_t *run;
    space_t *s;
    int64_t known, events, count;
    queued_t queue[2][QUEUE];
    int64_t head[2], size[2], last_taken[2], waiting_size[2];
    waiting_t waiting[2][QUEUE];
    int64_t last_port[2], free, end, paced_from, paced_beats, plan, moved[PORTS], resumed_end, choosing[2];
    int32_t current, interrupted, held[2]; /* bursts, or NONE; held: in the register of an address channel */
    int write_next;
} replay_t;

static int before(const event_t *a, const event_t *b)
{
    return a->time < b->time || (a->time == b->time && a->number < b->number);
}

static void push(replay_t *r, int64_t time, int32_t kind, int32_t subject)
{
    int64_t place = kind == CHOOSE ? LATE : kind == ENDED ? -LATE : 0;
    event_t *heap = r->s->heap, event = {time, r->count++ + place, kind, subject};
    int64_t at = r->events++;
    while (at) {
        int64_t up = (at - 1) / 2;
        if (before(&heap[up], &event))
            break;
        heap[at] = heap[up];
        at = up;
    }
    heap[at] = event;
}

static event_t pop(replay_t *r)
{
    event_t *heap = r->s->heap, top = heap[0], last = heap[--r->events];
    int64_t at = 0;
    for (;;) {
        int64_t down = 2 * at + 1;
        if (down >= r->events)
            break;
        if (down + 1 < r->events && before(&heap[down + 1], &heap[down]))
            down++;
        if (!before(&heap[down], &last))
            break;
        heap[at] = heap[down];
        at = down;
    }
    heap[at] = last;
    return top;
}

/* A node is known: so is what waits for nothing else any more. */
static void settle(replay_t *r, int32_t node)
{
    const run_t *g = r->run;
    int32_t *ready = r->s->ready;
    double *time = r->s->time;
    int64_t left = 0;
    ready[left++] = node;
    while (left) {
        int32_t v = ready[--left];
        time[v] += g->late[v];
        r->known++;
        int32_t burst = g->burst_of[v];
        if (burst >= 0)
            push(r, (int64_t)(time[v] + 0.5) - g->early[burst], OFFERED, burst);
        for (int64_t e = g->first[v]; e < g->first[v + 1]; e++) {
            int32_t to = g->target[e];
            double at = time[v] + g->lag[e];
            if (at > time[to])
                time[to] = at;
            if (!--r->s->missing[to])
                ready[left++] = to;
        }
    }
}

static void set(replay_t *r, int32_t node, int64_t time)
{
    r->s->time[node] = (double)time;
    settle(r, node);
}

static int64_t pace(replay_t *r, int64_t time, int64_t beats)
{
    int64_t first = r->paced_from + FULL * r->paced_beats / r->p->bandwidth;
    if (time > first) {
        r->paced_from = time;
        r->paced_beats = 0;
    }
    r->paced_beats += beats;
    return r->paced_from + FULL * (r->paced_beats - 1) / r->p->bandwidth;
}

/* The cycle of the last of so many beats that may move from ``time`` on. */
static int64_t last_beat(replay_t *r, int64_t time, int64_t beats)
{
    const dram_t *p = r->p;
    int64_t phase = (time + p->closed) % p->interval;
    if (phase < p->closed) {
        time += p->closed - phase;
        phase = p->closed;
    }
    int64_t end = p->bandwidth == FULL ? time + beats - 1 : pace(r, time, beats), spare = p->interval - phase;
    if (end - time >= spare)
        end += p->closed * (1 + (end - time - spare) / (p->interval - p->closed));
    return end;
}

static queued_t take(replay_t *r, int write)
{
    queued_t head = r->queue[write][r->head[write]];
    r->head[write] = (r->head[write] + 1) % QUEUE;
    r->size[write]--;
    return head;
}

static void interrupt(replay_t *r, int write)
{
    int64_t due = r->queue[write][r->head[write]].due;
    if (due > r->end)
        return;
    r->interrupted = r->current;
    r->current = take(r, write).burst;
    r->resumed_end = last_beat(r, r->end + 1, r->run->beats[r->current]);
    r->end = r->resumed_end - (r->end - due + 1);
}

static void serve(replay_t *r, int64_t time)
{
    int write;
    if (!r->size[0] && !r->size[1])
        return;
    queued_t *heads[2] = {&r->queue[0][r->head[0]], &r->queue[1][r->head[1]]};
    if (r->size[0] && r->size[1]) {
        int64_t reads = time > heads[0]->due ? time : heads[0]->due;
        int64_t writes = time > heads[1]->due ? time : heads[1]->due;
        write = writes < reads || (writes == reads && r->write_next);
    } else {
        write = !r->size[0];
    }
    r->plan++;
    if (heads[write]->due > time) {
        push(r, heads[write]->due, DUE, (int32_t)r->plan);
        return;
    }
    r->current = take(r, write).burst;
    if (r->run->pause[r->current]) {
        int64_t held = r->moved[r->run->port[r->current]] + r->run->pause[r->current] + 1;
        time = held > time ? held : time;
    }
    r->end = last_beat(r, time, r->run->beats[r->current]) + r->run->held[r->current];
    if (r->size[!write] && r->write_next != write)
        interrupt(r, !write);
    push(r, r->end, ENDED, r->current);
}

static int64_t accept(replay_t *r, int64_t time, int32_t burst)
{
    const dram_t *p = r->p;
    const run_t *g = r->run;
    int write = g->write[burst];
    int64_t at = time + p->stage;
    if (at <= r->last_taken[write])
        at = r->last_taken[write] + 1;
    if (at == r->last_taken[!write])
        at++;
    r->last_taken[write] = at;
    int64_t elapsed = at + p->closed, epoch = elapsed / p->interval, phase = elapsed % p->interval, begin = at;
    if (phase < p->closed)
        begin += p->closed - phase;
    int32_t bank = g->bank[burst];
    if (r->s->epoch[bank] != epoch) {
        begin += p->row_miss;
    } else {
        if (r->s->free[bank] > begin)
            begin = r->s->free[bank];
        if (r->s->row[bank] != g->row[burst])
            begin += p->row_miss;
    }
    r->s->row[bank] = g->row[burst];
    r->s->free[bank] = begin + g->beats[burst];
    r->s->epoch[bank] = epoch;
    int64_t due = at + p->queued;
    if (write) {
        if (begin > due)
            due = begin;
        if (time + p->write_buffered > due)
            due = time + p->write_buffered;
    } else if (begin + p->latency > due) {
        due = begin + p->latency - 1;
    }
    queued_t *entry = &r->queue[write][(r->head[write] + r->size[write]++) % QUEUE];
    entry->burst = burst;
    entry->due = due;
    return at;
}

/* A request enters the register of its channel, and leaves it if the queue has room. */
static void grant(replay_t *r, int64_t time, int32_t burst)
{
    int write = r->run->write[burst];
    int served = (r->current >= 0 && r->run->write[r->current] == write)
        || (r->interrupted >= 0 && r->run->write[r->interrupted] == write);
    int64_t at = time + r->p->stage;
    r->last_port[write] = r->run->port[burst];
    if (r->size[write] < r->p->queue_bursts + !served) {
        at = accept(r, time, burst);
        if (r->size[write] == 1 && r->interrupted < 0) {
            if (r->current < 0) {
                serve(r, at > r->free ? at : r->free);
            } else if (!served && r->write_next == write) {
                interrupt(r, write);
                if (r->interrupted >= 0)
                    push(r, r->end, ENDED, r->current);
            }
        }
    } else {
        r->held[write] = burst;
    }
    set(r, r->run->taken[burst], at);
}

static void choose_at(replay_t *r, int64_t time, int write)
{
    if (time < r->choosing[write]) {
        r->choosing[write] = time;
        push(r, time, CHOOSE, write);
    }
}

/* Grant one of the requests that wait, round robin. */
static void choose(replay_t *r, int64_t time, int write)
{
    const int32_t *port = r->run->port;
    waiting_t *waiting = r->waiting[write];
    int64_t best = NONE, last = r->last_port[write], soonest = 0;
    if (time != r->choosing[write])
        return;
    r->choosing[write] = NEVER;
    for (int64_t i = 0; i < r->waiting_size[write]; i++) {
        if (!i || waiting[i].since < soonest)
            soonest = waiting[i].since;
        if (waiting[i].since > time)
            continue;
        int32_t mine = port[waiting[i].burst], other = best < 0 ? mine : port[waiting[best].burst];
        int wraps = mine <= last, other_wraps = other <= last;
        if (best < 0 || wraps < other_wraps || (wraps == other_wraps && mine < other))
            best = i;
    }
    if (best < 0) {
        choose_at(r, soonest, write);
        return;
    }
    int32_t burst = waiting[best].burst;
    r->waiting_size[write]--;
    for (int64_t i = best; i < r->waiting_size[write]; i++)
        waiting[i] = waiting[i + 1];
    grant(r, time, burst);
    if (r->waiting_size[write] && r->held[write] < 0)
        choose_at(r, r->last_taken[write], write);
}

static void happen(replay_t *r, const event_t *event)
{
    int64_t time = event->time;
    if (event->kind == OFFERED) {
        int32_t burst = event->subject;
        int write = r->run->write[burst];
        int64_t since = time + r->run->early[burst];
        if (r->held[write] < 0 && !r->waiting_size[write] && (!r->events || r->s->heap[0].time > since)) {
            grant(r, since, burst);
            return;
        }
        r->waiting[write][r->waiting_size[write]++] = (waiting_t){burst, since};
        if (r->held[write] < 0)
            choose_at(r, since, write);
    } else if (event->kind == CHOOSE) {
        choose(r, time, event->subject);
    } else if (event->kind == DUE) {
        if (event->subject == r->plan && r->current < 0)
            serve(r, time);
    } else if (event->subject == r->current && time == r->end) {
        int32_t burst = r->current;
        int write = r->run->write[burst];
        r->write_next = !write;
        r->free = time + 1;
        if (!write)
            r->moved[r->run->port[burst]] = time;
        if (r->held[write] >= 0) {
            int64_t at = accept(r, time, r->held[write]);
            r->held[write] = NONE;
            if (r->waiting_size[write])
                choose_at(r, at, write);
        }
        r->current = r->interrupted;
        r->end = r->resumed_end;
        r->interrupted = NONE;
        if (r->current >= 0)
            push(r, r->end, ENDED, r->current);
        else
            serve(r, time + 1);
        set(r, r->run->ended[burst], time);
    }
}

/* Fill in the times of all nodes; returns how many are known: fewer than all where some wait for each other. */
int64_t caesura_replay(const dram_t *p, const run_t *run, space_t *space)
{
    replay_t state = {0}, *r = &state;
    r->p = p;
    r->run = run;
    r->s = space;
    r->current = r->interrupted = NONE;
    for (int way = 0; way < 2; way++) {
        r->last_taken[way] = r->last_port[way] = r->held[way] = NONE;
        r->choosing[way] = NEVER;
    }
    for (int64_t bank = 0; bank < p->banks; bank++)
        space->row[bank] = space->epoch[bank] = -1;
    for (int64_t v = 0; v < run->nodes; v++) {
        space->time[v] = 0;
        space->missing[v] = run->sources[v];
    }
    for (int64_t v = 0; v < run->nodes; v++)
        if (!run->sources[v])
            settle(r, (int32_t)v);
    while (r->events) {
        event_t event = pop(r);
        happen(r, &event);
    }
    return r->known;
}

/* What each node is late by, given when all were: how long after what it depends on. */
void caesura_calibrate(const run_t *run, const double *recorded, double *late)
{
    for (int64_t v = 0; v < run->nodes; v++)
        late[v] = 0;
    for (int64_t v = 0; v < run->nodes; v++)
        for (int64_t e = run->first[v]; e < run->first[v + 1]; e++) {
            double at = recorded[v] + run->lag[e];
            if (at > late[run->target[e]])
                late[run->target[e]] = at;
        }
    for (int64_t v = 0; v < run->nodes; v++)
        late[v] = recorded[v] - late[v];
}
