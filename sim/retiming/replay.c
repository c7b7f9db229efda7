/* When the moments of a run are: see dependencies.py for what they are, sim/model/dram.py for the memory. */
#include <stdint.h>

enum { OFFERED, DUE, ENDED };
enum { QUEUE = 1024, FULL = 100 };

/* The layouts of dram_t, run_t and space_t are those of replay.py. */
typedef struct {
    int64_t latency, row_miss, bandwidth, interval, closed, queue_bursts, stage, queued, write_buffered, banks;
} dram_t;

/* A graph: edges out of node v are first[v] .. first[v + 1] - 1. Of each burst: the nodes in which it is offered, its
 * address is taken, and its last beat moves; its client, direction, bank, row and beats; and how many cycles before it
 * is offered the memory knows of it. */
typedef struct {
    int64_t nodes, bursts;
    const int64_t *first;
    const int32_t *target;
    const double *lag, *late;
    const int32_t *sources;
    const int32_t *burst_of; /* the burst that is offered at a node, or -1 */
    const int32_t *taken, *ended, *port, *bank, *row, *beats;
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
    int32_t waiting[2][QUEUE];
    int64_t last_port[2], free, end, paced_from, paced_beats, plan;
    int32_t current;
    int write_next;
} replay_t;

static void push(replay_t *r, int64_t time, int32_t kind, int32_t subject)
{
    event_t *heap = r->s->heap, event = {time, r->count++, kind, subject};
    int64_t at = r->events++;
    while (at) {
        int64_t up = (at - 1) / 2;
        if (heap[up].time <= time)
            break;
        heap[at] = heap[up];
        at = up;
    }
    heap[at] = event;
}

static int before(const event_t *a, const event_t *b)
{
    return a->time < b->time || (a->time == b->time && a->number < b->number);
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

static void serve(replay_t *r, int64_t time)
{
    const dram_t *p = r->p;
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
    r->current = heads[write]->burst;
    r->head[write] = (r->head[write] + 1) % QUEUE;
    r->size[write]--;
    int64_t phase = (time + p->closed) % p->interval, beats = r->run->beats[r->current];
    if (phase < p->closed) {
        time += p->closed - phase;
        phase = p->closed;
    }
    int64_t end = p->bandwidth == FULL ? time + beats - 1 : pace(r, time, beats), spare = p->interval - phase;
    if (end - time >= spare)
        end += p->closed * (1 + (end - time - spare) / (p->interval - p->closed));
    r->end = end;
    push(r, end, ENDED, r->current);
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
    r->last_port[write] = g->port[burst];
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

static void admit(replay_t *r, int64_t time, int write)
{
    const int32_t *port = r->run->port;
    int32_t *waiting = r->waiting[write];
    int64_t best = 0, last = r->last_port[write];
    for (int64_t i = 1; i < r->waiting_size[write]; i++) {
        int wraps = port[waiting[i]] <= last, best_wraps = port[waiting[best]] <= last;
        if (wraps < best_wraps || (wraps == best_wraps && port[waiting[i]] < port[waiting[best]]))
            best = i;
    }
    int32_t burst = waiting[best];
    r->waiting_size[write]--;
    for (int64_t i = best; i < r->waiting_size[write]; i++)
        waiting[i] = waiting[i + 1];
    set(r, r->run->taken[burst], accept(r, time, burst));
}

static void happen(replay_t *r, const event_t *event)
{
    int64_t time = event->time;
    if (event->kind == OFFERED) {
        int32_t burst = event->subject;
        int write = r->run->write[burst];
        if (r->size[write] > r->p->queue_bursts || r->waiting_size[write]) {
            r->waiting[write][r->waiting_size[write]++] = burst;
            return;
        }
        int64_t at = accept(r, time + r->run->early[burst], burst);
        if (r->current < 0 && r->size[write] == 1)
            serve(r, at > r->free ? at : r->free);
        set(r, r->run->taken[burst], at);
    } else if (event->kind == DUE) {
        if (event->subject == r->plan && r->current < 0)
            serve(r, time);
    } else {
        int32_t burst = r->current;
        int write = r->run->write[burst];
        r->write_next = !write;
        r->free = time + 1;
        if (r->waiting_size[write])
            admit(r, time, write);
        r->current = -1;
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
    r->current = -1;
    for (int way = 0; way < 2; way++)
        r->last_taken[way] = r->last_port[way] = -1;
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
