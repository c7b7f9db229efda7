/* The list schedule: each unit works on one task at a time, and whenever one is free the task that can start first goes
 * first. schedule.py says more. */
#include "schedule.h"

#pragma STDC FP_CONTRACT OFF /* sums are rounded as in Python */

enum { NOBODY = -1 };

static const double UNKNOWN = -1; /* when a task ends, while that is not known */

static double later(double a, double b) { return a > b ? a : b; }

/* Whether all that the next task of a queue needs has ended; ``begin`` is when, then. */
static int known(const schedule_t *schedule, i64 queue) {
    i64 stop = schedule->need_first[schedule->next[queue] + 1];
    for (; schedule->looked[queue] < stop; schedule->looked[queue]++) {
        double end = schedule->end[schedule->needs[schedule->looked[queue]]];
        if (end == UNKNOWN)
            return 0;
        schedule->begin[queue] = later(schedule->begin[queue], end);
    }
    return 1;
}

static void next_of(const schedule_t *schedule, i64 queue, i64 task) {
    schedule->next[queue] = task;
    schedule->looked[queue] = schedule->need_first[task];
    schedule->begin[queue] = 0;
}

/* Returns how many tasks were taken: fewer than there are if some wait for each other, or for what never ends. */
i64 caesura_list_schedule(const schedule_t *schedule) {
    const double *cycles = schedule->cycles;
    double free[SCHEDULE_UNITS] = {0};
    for (i64 queue = 0; queue < schedule->queues; queue++)
        next_of(schedule, queue, schedule->first[queue]);
    for (i64 task = 0; task < schedule->first[schedule->queues]; task++)
        schedule->end[task] = UNKNOWN;
    for (i64 taken = 0;; taken++) {
        i64 chosen = NOBODY;
        double least = 0, rank = 0, first = 0;
        for (i64 queue = 0; queue < schedule->queues; queue++) {
            i64 task = schedule->next[queue];
            if (task == schedule->first[queue + 1] || !known(schedule, queue))
                continue;
            double start = schedule->begin[queue];
            if (cycles[task] > 0) /* what takes no time does not wait for its unit */
                start = later(start, free[schedule->unit[queue]]);
            double key = schedule->patience ? start + schedule->patience[task] : start;
            int sooner = key < least || (key == least && schedule->rank[task] < rank);
            if (chosen == NOBODY || sooner || (key == least && schedule->rank[task] == rank && start < first)) {
                chosen = queue;
                least = key;
                rank = schedule->rank[task];
                first = start;
            }
        }
        if (chosen == NOBODY)
            return taken;
        i64 task = schedule->next[chosen], unit = schedule->unit[chosen];
        schedule->order[taken] = task;
        schedule->start[task] = first;
        schedule->end[task] = first + cycles[task];
        free[unit] = later(free[unit], schedule->end[task]);
        next_of(schedule, chosen, task + 1);
    }
}
