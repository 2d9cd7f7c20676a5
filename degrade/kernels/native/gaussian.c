/* Separable correlation of byte planes with odd kernels in 1/65536. Sums are exact: 24 bits along the lines, which are stored as
   multiples of 1/256 level, and 32 bits along the columns. */
#include "native.h"

#include <string.h>

#define BLOCK 64 /* outputs that are summed in registers */

/* plane: height x width bytes; stored: height x width, in units of 1/256 level; kernel: size weights in 1/65536; line: scratch of
   width + size - 1 + BLOCK. Rows first..last - 1. */
VECTOR_CLONES void degrade_gaussian_lines(const uint8_t *plane, const float *kernel, uint16_t *stored, float *line, int64_t width,
                                          int64_t size, int64_t first, int64_t last) {
    int64_t reach = size / 2, end = width + size - 1;
    for (int64_t x = end; x < end + BLOCK; x++) line[x] = 0;
    for (int64_t y = first; y < last; y++) {
        const uint8_t *in = plane + y * width;
        for (int64_t x = 0; x < width; x++) line[reach + x] = in[x];
        for (int64_t x = 0; x < reach; x++) {
            line[x] = in[mirrored(x - reach, width)];
            line[reach + width + x] = in[mirrored(width + x, width)];
        }
        uint16_t *out = stored + y * width;
        for (int64_t x = 0; x < width; x += BLOCK) {
            float total[BLOCK] = {0};
            for (int64_t tap = 0; tap < size; tap++)
                for (int64_t lane = 0; lane < BLOCK; lane++) total[lane] += kernel[tap] * line[x + tap + lane];
            int64_t count = width - x < BLOCK ? width - x : BLOCK;
            for (int64_t lane = 0; lane < count; lane++) out[x + lane] = (uint16_t)(((int32_t)total[lane] + 128) >> 8);
        }
    }
}

/* stored: height x width as above, readable for BLOCK values more; out: levels times the factor, fractions dropped; strip: scratch of
   (last - first + size - 1) BLOCK. Rows first..last - 1. */
VECTOR_CLONES void degrade_gaussian_columns(const uint16_t *stored, const uint32_t *kernel, uint8_t *out, uint16_t *strip, double factor,
                                            int64_t height, int64_t width, int64_t size, int64_t first, int64_t last) {
    const double scale = 0x1p-24 * factor; /* powers of two are exact */
    for (int64_t x = 0; x < width; x += BLOCK) {
        int64_t count = width - x < BLOCK ? width - x : BLOCK;
        for (int64_t n = 0; n < last - first + size - 1; n++)
            memcpy(strip + n * BLOCK, stored + mirrored(first + n - size / 2, height) * width + x, BLOCK * sizeof *strip);
        for (int64_t y = first; y < last; y++) {
            const uint16_t *above = strip + (y - first) * BLOCK;
            uint32_t total[BLOCK] = {0};
            for (int64_t tap = 0; tap < size; tap++)
                for (int64_t lane = 0; lane < BLOCK; lane++) total[lane] += kernel[tap] * above[tap * BLOCK + lane];
            uint8_t result[BLOCK];
            if (factor == 1)
                for (int64_t lane = 0; lane < BLOCK; lane++) result[lane] = (uint8_t)(total[lane] >> 24);
            else
                for (int64_t lane = 0; lane < BLOCK; lane++) result[lane] = truncated_double(total[lane] * scale);
            memcpy(out + y * width + x, result, count);
        }
    }
}
