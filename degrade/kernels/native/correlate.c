/* Correlation of byte planes with small sparse kernels of fixed-point weights. */
#include "native.h"

#define UNIT_BITS 16

static inline void add_tap(int32_t *restrict sums, const uint8_t *restrict line, int32_t weight, int64_t width) {
    for (int64_t x = 0; x < width; x++) sums[x] += weight * line[x];
}

static inline void round_to_even(const int32_t *restrict sums, uint8_t *restrict out, int64_t width) {
    for (int64_t x = 0; x < width; x++) {
        int32_t half_down = (1 << (UNIT_BITS - 1)) - 1;
        int32_t odd = (sums[x] >> UNIT_BITS) & 1;
        out[x] = (uint8_t)((sums[x] + half_down + odd) >> UNIT_BITS);
    }
}

/* lines: padded_height x padded_width bytes, the plane continued by size - 1 pixels; kernel: size x size weights >= 0 in 1/65536
   that sum to 1; out: height x width bytes; sums: scratch of width. */
VECTOR_CLONES void degrade_correlate(const uint8_t *lines, const int32_t *kernel, uint8_t *out, int32_t *sums, int64_t height, int64_t width,
                       int64_t size) {
    int64_t stride = width + size - 1;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) sums[x] = 0;
        for (int64_t row = 0; row < size; row++)
            for (int64_t column = 0; column < size; column++) {
                int32_t weight = kernel[row * size + column];
                if (weight) add_tap(sums, lines + (y + row) * stride + column, weight, width);
            }
        round_to_even(sums, out + y * width, width);
    }
}
