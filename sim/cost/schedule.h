/* The list schedule: see schedule.c. */
#include <stdint.h>

typedef int64_t i64;

enum { SCHEDULE_UNITS = 8 };

/* Of the layout of schedule.py. Tasks of a queue have consecutive numbers, beginning with ``first``, which has one entry
 * more than there are queues; so has ``need_first``, by task, of the tasks in ``needs`` that must have ended before. A
 * task takes ``cycles``; of two the one with the lower ``rank`` is taken, and for ``patience`` cycles (NULL: none) a task
 * lets others go first. Results: by task when it starts and ends, and the tasks in the ``order`` in which they are
 * taken. The rest is to work in, one entry for each queue. */
typedef struct {
    i64 queues;
    const i64 *unit, *first, *need_first, *needs;
    const double *cycles, *rank, *patience;
    double *start, *end;
    i64 *order;
    i64 *next, *looked;
    double *begin;
} schedule_t;

i64 caesura_list_schedule(const schedule_t *schedule);
