/* The noise of degrade/kernels/noise.py, added to bytes. */
#include "native.h"

static inline uint32_t hash(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
}

/* One image of `count` values, of which the pairs first..last - 1 are done: value n and value n + (count + 1) / 2. */
VECTOR_CLONES void degrade_add_noise(const uint8_t *restrict in, const float *restrict quantiles, uint8_t *restrict out, double deviation,
                                     int64_t first_key, int64_t second_key, int64_t count, int64_t first, int64_t last) {
    const int64_t half = (count + 1) / 2, end = last < count - half ? last : count - half;
    const float scale = (float)deviation;
    const uint32_t one = (uint32_t)first_key, other = (uint32_t)second_key;
    for (int64_t n = first; n < last; n++) {
        uint32_t bits = hash(hash(((uint32_t)n * 0x9E3779B1u) ^ one) + other);
        out[n] = truncated((float)in[n] + scale * quantiles[bits >> 16]);
    }
    for (int64_t n = first; n < end; n++) { /* one condition: with two, compilers give up on vectors */
        uint32_t bits = hash(hash(((uint32_t)n * 0x9E3779B1u) ^ one) + other);
        out[n + half] = truncated((float)in[n + half] + scale * quantiles[bits & 0xFFFF]);
    }
}
