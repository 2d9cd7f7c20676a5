/* Separable correlation of byte planes with odd kernels in 1/65536, exact: lines in float32 (24 bits), columns in float64 (40 bits). */
#include "native.h"

#define BLOCK 32 /* outputs that are summed in registers */

static inline int64_t mirror(int64_t at, int64_t length) {
    if (length == 1) return 0;
    int64_t period = 2 * (length - 1);
    at %= period;
    if (at < 0) at += period;
    return at < length ? at : period - at;
}

/* plane: height x width bytes; sums: height x width, in units of 1/65536; kernel: size weights in those units; line: scratch of
   width + size - 1 + BLOCK. Rows first..last - 1. */
VECTOR_CLONES void degrade_gaussian_lines(const uint8_t *plane, const float *kernel, float *sums, float *line, int64_t width, int64_t size,
                                          int64_t first, int64_t last) {
    int64_t reach = size / 2, end = width + size - 1;
    for (int64_t x = end; x < end + BLOCK; x++) line[x] = 0;
    for (int64_t y = first; y < last; y++) {
        const uint8_t *in = plane + y * width;
        for (int64_t x = 0; x < width; x++) line[reach + x] = in[x];
        for (int64_t x = 0; x < reach; x++) {
            line[x] = in[mirror(x - reach, width)];
            line[reach + width + x] = in[mirror(width + x, width)];
        }
        float *out = sums + y * width;
        for (int64_t x = 0; x < width; x += BLOCK) {
            float total[BLOCK] = {0};
            for (int64_t tap = 0; tap < size; tap++)
                for (int64_t lane = 0; lane < BLOCK; lane++) total[lane] += kernel[tap] * line[x + tap + lane];
            int64_t count = width - x < BLOCK ? width - x : BLOCK;
            for (int64_t lane = 0; lane < count; lane++) out[x + lane] = total[lane];
        }
    }
}

/* sums: height x width as above; out: height x width levels, multiples of 2^-32. Rows first..last - 1. */
VECTOR_CLONES void degrade_gaussian_columns(const float *sums, const float *kernel, double *out, int64_t height, int64_t width, int64_t size,
                                            int64_t first, int64_t last) {
    int64_t reach = size / 2;
    for (int64_t y = first; y < last; y++)
        for (int64_t x = 0; x < width; x += BLOCK) {
            double total[BLOCK] = {0};
            int64_t count = width - x < BLOCK ? width - x : BLOCK;
            for (int64_t tap = 0; tap < size; tap++) {
                const float *in = sums + mirror(y + tap - reach, height) * width + x;
                double weight = kernel[tap];
                if (count == BLOCK)
                    for (int64_t lane = 0; lane < BLOCK; lane++) total[lane] += weight * in[lane];
                else
                    for (int64_t lane = 0; lane < count; lane++) total[lane] += weight * in[lane];
            }
            for (int64_t lane = 0; lane < count; lane++) out[y * width + x + lane] = total[lane] * 0x1p-32;
        }
}
