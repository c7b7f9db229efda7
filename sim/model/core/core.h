/* Time and the memory port of the fast model: events in order, DRAM and the way to it, the write ports of LV2, and the
 * units that move data between them. What each means stands in the Python module of its name beside this folder.
 *
 * What happens in Python is told by the functions of ``told_t``; a number of Python's says which of its things is meant. */
#include <stdint.h>

typedef int64_t i64;

#define EXPORT __attribute__((visibility("default")))

enum { NEVER = INT64_MAX >> 2, NOBODY = -1, HELD = -1 };
enum { READ, WRITE };
enum { PLACES = 16 };            /* room for commands of a unit */
enum { AR, AW, CHANNELS = 4 };   /* of stalls: the two of addresses, those of data behind them */

/* The layout of params_t is that of __init__.py, and so are those of given_t, client_t and told_t. */
typedef struct {
    i64 latency, miss, bandwidth, row_shift, banks, bank_bits, interval, closed, queue_bursts, axi_stage, axi_return,
        dram_queued, write_buffered, engines, lv1_word, dram_word, lv2_banks, outstanding, in_flight, planned, fetched,
        filled, landed, settled, store_buffered, full, ahead;
} params_t;

/* Kinds of an event: Python's, of the memory, of LD2 and of ST2. */
enum { OF_PYTHON, CHOOSE, DUE, ENDED, FREEZE, THAWED, ASK, LOADED, RECOVERED, ANNOUNCE, STORED };

typedef struct {
    i64 time, order, kind, a, b;
    void *who;
} event_t;

/* What Python is told of a command. */
enum { TAKEN, DONE, STRUCK, GIVEN_UP };

typedef struct {
    void (*event)(i64 time, i64 number);
    void (*accepted)(i64 number, i64 time);
    void (*served)(i64 number, i64 time);
    void (*command)(i64 what, i64 number, i64 time, i64 burst);
    i64 (*banks)(i64 engine, i64 held, i64 *length); /* address of int32: the bank of each step of the oldest store */
} told_t;

enum { IN_PYTHON, LOAD_UNIT, STORE_UNIT };

/* Whoever asks for bursts: ``number`` is Python's for its kind. */
typedef struct {
    i64 kind, port, moved, number;
    void *unit;
} client_t;

/* ``subject``: what the client knows the burst by. */
typedef struct {
    client_t *client;
    i64 time, address, beats, subject, pause, into;
} request_t;

typedef struct {
    client_t *client;
    i64 number, due, beats, write, subject, pause, into, failed;
} burst_t;

typedef struct {
    burst_t *bursts;
    i64 head, count, room;
} queue_t;

typedef struct {
    i64 line, free, epoch;
} bank_t;

typedef struct {
    i64 *items, count, room;
} list_t;

/* In which cycles each channel does not stall. */
typedef struct {
    i64 begin, rate, drawn, on;
    uint32_t state;
    list_t free[CHANNELS];
} stalls_t;

/* A copy of ST1: see lv2_writes.py. */
typedef struct {
    i64 start, steps, length;
    int32_t *banks;
} store_t;

typedef struct {
    store_t *stores;
    i64 head, count, room, before, latest;
} writes_t;

/* A copy of LD1: in cycle ``start`` + k it reads word ``first`` + ``words[k]`` of LV2 (below 0: none), or, without
 * ``words``, word ``first`` + k. ``low`` and ``high`` are the least and the greatest of these. */
typedef struct {
    i64 start, length, first, low, high;
    const int32_t *words;
} reading_t;

enum { READINGS = 8 }; /* that are known of an engine */

typedef struct {
    reading_t readings[READINGS];
    i64 newest;
} reads_t;

struct core;

/* A unit's accesses to banks, one to a cycle: slot k asks for word ``first`` + ``words[k]`` (below 0: none), or, without
 * ``words``, for the next word in every ``period``-th slot; ``others`` are asked for with them. A stream that is ``ahead``
 * of its use makes up for a lost cycle in a slot without a word. It was ``timed`` to start when its instruction was taken. */
typedef struct {
    i64 start, length, first, period, ahead;
    const int32_t *words, *others;
    i64 timed;
} stream_t;

enum { STREAMS = 16 };          /* that are known of a port */
enum { LV2_WRITES, LV2_READS }; /* the first arenas: two ports for each engine, as in LV2 */

/* ``owed``: cycles that a port of LV1 has lost and that its unit has not been told of. */
typedef struct {
    stream_t streams[STREAMS];
    i64 newest, owed, until;
} port_t;

typedef struct {
    port_t *ports;
    i64 count, banks, turn;
} arena_t;

typedef struct {
    i64 arena, port;
} place_t;

/* LD1, LD0, ST1 or VEC, which reads by one port and writes by another; arena NOBODY: none that is followed. ``follows``:
 * it is ready for the next as it ends. */
typedef struct {
    struct core *core;
    place_t in, out;
    i64 vec, ready, end, follows;
} pipe_t;

/* What Python says of an instruction, and of one that it gives: the layouts are those of bank_ports.py and pipes.py.
 * A VEC asks for its ``parameters`` in ``runs`` slots, from ``ahead`` cycles after it was accepted on. */
typedef struct {
    i64 runs, steps, late, ahead, setup, tail, length, period, low, high, fetched;
    const int32_t *reads, *others, *writes, *parameters, *fetches;
} work_t;

typedef struct {
    i64 valid, begin, from, into;
    const work_t *work;
    i64 number;
} asked_t;

/* A command of LD2 or ST2: see transfer.py. ``bursts``: four numbers of each of ``part``, over and over up to ``count``. */
typedef struct {
    i64 number, side, base, into, lead, trail, runs, steps, count, part;
    const i64 *bursts;
} given_t;

typedef struct {
    given_t given;
    i64 used, begin, next, left, last;
} transfer_t;

typedef struct {
    transfer_t *items[PLACES];
    i64 head, count;
} line_t;

typedef struct {
    struct core *core;
    client_t client;
    transfer_t places[PLACES], *offers[2], *latest;
    i64 offered[2];
    line_t flying, asking;
    i64 in_flight, held, next_accept, next_ask, end, trail, generation, dead, recovering;
} load_unit_t;

typedef struct {
    struct core *core;
    client_t client;
    transfer_t places[PLACES], *latest;
    i64 offered[PLACES];
    line_t offers, flying, announcing;
    i64 outstanding, backlog, held, scheduled, next_accept, free, generation;
} store_unit_t;

/* Python reads and writes the members before ``params``; their layout is that of __init__.py. */
typedef struct core {
    i64 stopped, failed, resumed, events_planned, bursts_accepted;
    params_t params;
    told_t told;
    /* agenda.c */
    event_t *heap;
    i64 heap_count, heap_room, last;
    /* memory.c */
    i64 epoch, opens, shuts, shuts_next, taken[2], last_port[2], choosing[2], plan, numbers;
    bank_t *banks;
    queue_t queues[2];
    request_t registers[2], *waiting[2];
    i64 waiting_count[2], waiting_room[2];
    burst_t current, interrupted; /* of nobody: none */
    i64 end, interrupted_last, interrupted_left, free, paced_begin, paced_count, write_next, held_up, landing;
    list_t units;
    /* faults.c */
    i64 awry, frozen, struck, orders, error, error_begin, error_end, error_base, error_last;
    stalls_t stalls;
    /* lv2_writes.c */
    writes_t *writes;
    i64 turn, soonest;
    reads_t *reads;
    i64 read_until, read_low, read_high; /* when LD1 has read all that is known, and which words at most */
    /* bank_ports.c */
    arena_t *arenas;
    i64 arena_count;
} core_t;

static inline i64 later(i64 a, i64 b) { return a > b ? a : b; }
static inline i64 sooner(i64 a, i64 b) { return a < b ? a : b; }

void at(core_t *core, i64 time, i64 kind, void *who, i64 a, i64 b);
void lose(port_t *port, i64 time);
void early(core_t *core, i64 time, i64 kind, void *who, i64 a, i64 b);
void late(core_t *core, i64 time, i64 kind, void *who, i64 a, i64 b);
int first(const core_t *core, i64 time);
int busy_until(const core_t *core, i64 time);
void append(list_t *list, i64 item);
void *grown(void *items, i64 *room, i64 count, i64 size);

i64 request(core_t *core, i64 write, const request_t *held);
i64 accept_burst(core_t *core, i64 time, i64 write, const request_t *held);
void choose(core_t *core, i64 time, i64 write);
void due(core_t *core, i64 time, i64 plan);
void ended(core_t *core, i64 time, i64 number);
void serve(core_t *core, i64 time);
void go_on(core_t *core);
void refill(core_t *core, i64 time, i64 write);

void freeze(core_t *core, i64 time, i64 orders, i64 end);
void thawed(core_t *core, i64 time, i64 orders);
i64 strikes(core_t *core, i64 at, i64 address);
void answered(core_t *core);
i64 stalled(stalls_t *stalls, i64 channel, i64 time, i64 beats);

void lv2_read(core_t *core, i64 engine, const reading_t *reading);
int meets_at_lv2(core_t *core, i64 time, i64 into, i64 beats);
i64 held_by_lv2(core_t *core, i64 engine, i64 time, i64 into, i64 beats);

transfer_t *place_for(transfer_t *places, const transfer_t *latest, const given_t *given);
const i64 *burst_of(const transfer_t *transfer, i64 number);
void *new_unit(core_t *core, i64 size);
void push(line_t *line, transfer_t *transfer);
transfer_t *pop(line_t *line);

void load_ask(load_unit_t *unit, i64 time, i64 generation);
void load_accepted(load_unit_t *unit, i64 time);
void load_came(load_unit_t *unit, i64 time, transfer_t *transfer, i64 landing);
void load_done(load_unit_t *unit, i64 time, i64 place, i64 generation);
void load_recovered(load_unit_t *unit, i64 time, i64 generation);
void store_announce(store_unit_t *unit, i64 time, i64 generation);
void store_accepted(store_unit_t *unit, i64 time);
void store_went(store_unit_t *unit, i64 time, i64 subject, i64 beats);
void store_done(store_unit_t *unit, i64 time, i64 place, i64 generation);
