/* First fit of buffers that share bytes with those they never live beside. first_fit.py says more. */
#include <stdint.h>

typedef int64_t i64;

__attribute__((visibility("default"))) void caesura_first_fit(
    i64 offered, i64 buffers, i64 limit, const i64 *order, const i64 *sizes, const i64 *bases, const uint8_t *together,
    i64 *offsets, i64 *placed) {
    i64 count = 0; /* of those placed, which lie in order of their offsets */
    for (i64 at = 0; at < offered; at++) {
        i64 one = order[at], offset = bases[one], size = sizes[one];
        const uint8_t *beside = together + one * buffers;
        for (i64 place = 0; place < count; place++) {
            i64 other = placed[place], end = offsets[other] + sizes[other];
            if (end <= offset || !beside[other])
                continue;
            if (offsets[other] >= offset + size)
                break;
            offset = end;
        }
        if (offset + size > limit)
            continue;
        offsets[one] = offset;
        i64 place = count++;
        for (; place && offsets[placed[place - 1]] > offset; place--)
            placed[place] = placed[place - 1];
        placed[place] = one;
    }
}
