/* Longest paths through a graph of moments: see dependencies.py. */
#include <stdint.h>

/* Order nodes so that all come behind what they depend on. first_out and out: successors of each node; missing: how
 * many predecessors each has, which is used up. Returns how many nodes were ordered: fewer than n if some wait for
 * each other. */
int64_t caesura_order(int64_t n, const int64_t *first_out, const int32_t *out, int32_t *missing, int32_t *order)
{
    int64_t known = 0;
    for (int64_t v = 0; v < n; v++)
        if (!missing[v])
            order[known++] = (int32_t)v;
    for (int64_t at = 0; at < known; at++) {
        int32_t v = order[at];
        for (int64_t e = first_out[v]; e < first_out[v + 1]; e++)
            if (!--missing[out[e]])
                order[known++] = out[e];
    }
    return known;
}

/* When each node is, given the edges that end at it and what it is late by beyond. Nodes are in order. */
void caesura_times(int64_t n, const int64_t *first, const int32_t *source, const double *lag, const double *late,
                   double *time)
{
    for (int64_t v = 0; v < n; v++) {
        double latest = 0;
        for (int64_t e = first[v]; e < first[v + 1]; e++) {
            double at = time[source[e]] + lag[e];
            if (at > latest)
                latest = at;
        }
        time[v] = latest + late[v];
    }
}

/* What each node is late by, given when it was: negative times are not known, those nodes are never late. */
void caesura_calibrate(int64_t n, const int64_t *first, const int32_t *source, const double *lag,
                       const double *recorded, double *late, double *time)
{
    for (int64_t v = 0; v < n; v++) {
        double latest = 0;
        for (int64_t e = first[v]; e < first[v + 1]; e++) {
            double at = time[source[e]] + lag[e];
            if (at > latest)
                latest = at;
        }
        time[v] = recorded[v] < 0 ? latest : recorded[v];
        late[v] = time[v] - latest;
    }
}
