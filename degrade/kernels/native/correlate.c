/* Small filters on byte planes; what is computed is stated in degrade/kernels/filter.py. */
#include "native.h"

#include <string.h>

enum { UNIT_BITS = 16, BLOCK = 64 /* outputs that are summed in registers */ };

static inline uint8_t unit_rounded(int32_t sum) {
    int32_t half_down = (1 << (UNIT_BITS - 1)) - 1, odd = (sum >> UNIT_BITS) & 1;
    return (uint8_t)((sum + half_down + odd) >> UNIT_BITS);
}

/* plane, out: height x width bytes; kernel: size x size weights >= 0 in 1/65536 that sum to 1, anchor size / 2; padded: scratch of
   (height + size - 1) (width + size - 1) + BLOCK bytes; offsets, weights: scratch of size x size; windows: of BLOCK times that. Only
   taps that are not 0 are added up: a rotated line has about 2 size of them. */
VECTOR_CLONES void degrade_correlate(const uint8_t *plane, const int32_t *kernel, uint8_t *out, uint8_t *padded, int64_t *offsets,
                                     int32_t *weights, uint8_t *windows, int64_t height, int64_t width, int64_t size) {
    int64_t stride = width + size - 1, before = size / 2, taps = 0;
    for (int64_t y = 0; y < height + size - 1; y++) {
        const uint8_t *from = plane + mirrored(y - before, height) * width;
        uint8_t *to = padded + y * stride;
        memcpy(to + before, from, width);
        for (int64_t x = 0; x < before; x++) to[x] = from[mirrored(x - before, width)];
        for (int64_t x = before + width; x < stride; x++) to[x] = from[mirrored(x - before, width)];
    }
    memset(padded + (height + size - 1) * stride, 0, BLOCK);
    for (int64_t n = 0; n < size * size; n++)
        if (kernel[n]) {
            offsets[taps] = n / size * stride + n % size;
            weights[taps++] = kernel[n];
        }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x += BLOCK) {
            /* Only at regular distances do compilers keep the sums in registers: the copy pays. */
            for (int64_t tap = 0; tap < taps; tap++) memcpy(windows + tap * BLOCK, padded + y * stride + x + offsets[tap], BLOCK);
            int32_t sums[BLOCK] = {0};
            for (int64_t tap = 0; tap < taps; tap++)
                for (int64_t lane = 0; lane < BLOCK; lane++) sums[lane] += weights[tap] * windows[tap * BLOCK + lane];
            uint8_t result[BLOCK];
            for (int64_t lane = 0; lane < BLOCK; lane++) result[lane] = unit_rounded(sums[lane]);
            memcpy(out + y * width + x, result, width - x < BLOCK ? width - x : BLOCK);
        }
}

/* edges: scratch of width. In 16 bits first, which is twice as quick. */
VECTOR_CLONES void degrade_sharpen(const uint8_t *plane, uint8_t *restrict out, int16_t *restrict edges, double factor, double kept,
                                   double mixed, int64_t height, int64_t width) {
    const float gain = (float)factor, weight = (float)kept, other = (float)mixed;
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *restrict above = plane + mirrored(y - 1, height) * width, *restrict below = plane + mirrored(y + 1, height) * width;
        const uint8_t *restrict row = plane + y * width;
        uint8_t *to = out + y * width;
        for (int64_t x = 0; x < width; x += width > 1 ? width - 1 : 1) /* the ends */
            edges[x] = (int16_t)(5 * row[x] - (above[x] + below[x] + row[mirrored(x - 1, width)] + row[mirrored(x + 1, width)]));
        for (int64_t x = 1; x < width - 1; x++) edges[x] = (int16_t)(5 * row[x] - (above[x] + below[x] + row[x - 1] + row[x + 1]));
        for (int64_t x = 0; x < width; x++)
            to[x] = rounded((float)row[x] * weight + round_to_even(clipped(gain * (float)edges[x])) * other);
    }
}
