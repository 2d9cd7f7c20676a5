/* Rows and blocks of byte planes that move as wholes; what is computed is stated in degrade/kernels/warp.py. */
#include "native.h"

#include <string.h>

enum { GRID_BITS = 5, GRID = 1 << GRID_BITS }; /* positions are multiples of 1/GRID pixel */

static inline int64_t within(int64_t value, int64_t last) { return value < 0 ? 0 : value > last ? last : value; }

static inline void between(const uint8_t *restrict one, const uint8_t *restrict other, uint16_t *restrict out, int fraction, int64_t count) {
    for (int64_t x = 0; x < count; x++) out[x] = (uint16_t)(one[x] * (GRID - fraction) + other[x] * fraction);
}

static inline void sample(const uint16_t *restrict line, uint8_t *restrict out, int fraction, int64_t count) {
    const int bits = 2 * GRID_BITS;
    for (int64_t x = 0; x < count; x++)
        out[x] = (uint8_t)((line[x] * (GRID - fraction) + line[x + 1] * fraction + (1 << (bits - 1))) >> bits);
}

/* shift, row: positions of each line in pixels; line: scratch of width + 1. Lines first..last - 1. */
VECTOR_CLONES void degrade_move_rows(const uint8_t *plane, const double *shift, const double *row, uint8_t *out, uint16_t *line,
                                     int64_t height, int64_t width, int64_t first, int64_t last) {
    for (int64_t y = first; y < last; y++) {
        int64_t down = within((int64_t)(row[y] * GRID), (height - 1) * GRID), right = (int64_t)(shift[y] * GRID);
        const uint8_t *above = plane + (down >> GRID_BITS) * width;
        const uint8_t *below = plane + within((down >> GRID_BITS) + 1, height - 1) * width;
        int fraction = (int)(down & (GRID - 1));
        /* line[x] stands at x + start, continued by the edge pixels */
        int64_t start = right >> GRID_BITS, left = within(-start, width + 1), end = within(width - start, width + 1);
        for (int64_t x = 0; x < left; x++) line[x] = (uint16_t)(above[0] * (GRID - fraction) + below[0] * fraction);
        if (end > left) between(above + left + start, below + left + start, line + left, fraction, end - left);
        for (int64_t x = end > left ? end : left; x <= width; x++)
            line[x] = (uint16_t)(above[width - 1] * (GRID - fraction) + below[width - 1] * fraction);
        sample(line, out + y * width, (int)(right & (GRID - 1)), width);
    }
}

/* source[n]: the block whose pixels block n gets, of rows x columns of them, counted along the rows. */
void degrade_move_blocks(const uint8_t *plane, const int64_t *source, uint8_t *out, int64_t height, int64_t width, int64_t block,
                         int64_t rows, int64_t columns) {
    memcpy(out, plane, height * width);
    for (int64_t n = 0; n < rows * columns; n++) {
        if (source[n] == n) continue;
        const uint8_t *from = plane + (source[n] / columns * width + source[n] % columns) * block;
        uint8_t *to = out + (n / columns * width + n % columns) * block;
        for (int64_t y = 0; y < block; y++) memcpy(to + y * width, from + y * width, block);
    }
}
