/* Canvases laid over byte images; what is computed is stated in degrade/kernels/marks.py. */
#include "native.h"

#include <string.h>

enum { BLOCK = 64, SMALL_BLOCK = 32 }; /* pixels that are passed over at once where nothing stands */

static inline int stands_between(const uint8_t *marks, int64_t count) {
    uint8_t any = 0;
    for (int64_t n = 0; n < count; n++) any |= marks[n];
    return any != 0;
}

/* One channel: where the canvas holds n > 0, the number n - 1 of the `colours` levels, which stand `step` apart. */
VECTOR_CLONES void degrade_cover(const uint8_t *restrict plane, const uint8_t *restrict canvas, const uint8_t *levels, uint8_t *restrict out,
                                 int64_t size, int64_t colours, int64_t step) {
    uint8_t level[256] = {0};
    for (int64_t n = 0; n < colours && n < 255; n++) level[n + 1] = levels[n * step];
    memcpy(out, plane, size);
    for (int64_t start = 0; start < size; start += SMALL_BLOCK) {
        int64_t end = size - start < SMALL_BLOCK ? size : start + SMALL_BLOCK;
        if (!stands_between(canvas + start, end - start)) continue;
        uint8_t largest = 0, others = 0;
        for (int64_t n = start; n < end; n++) largest = canvas[n] > largest ? canvas[n] : largest;
        for (int64_t n = start; n < end; n++) others |= (uint8_t)(canvas[n] != 0 && canvas[n] != largest);
        const uint8_t only = level[largest];
        if (others)
            for (int64_t n = start; n < end; n++) out[n] = canvas[n] ? level[canvas[n]] : plane[n];
        else /* mostly so, and it needs no look into the table for each pixel */
            for (int64_t n = start; n < end; n++) out[n] = canvas[n] ? only : plane[n];
    }
}

/* One channel: the plane plus weight times colour times the marks (0 or 1) blurred by three weights, in 1/65536, along both axes. */
VECTOR_CLONES void degrade_add_glow(const uint8_t *restrict plane, const uint8_t *restrict marks, const double *kernel, uint8_t *restrict out,
                                    double weight, double colour, int64_t height, int64_t width) {
    const float scale = (float)weight, level = (float)colour;
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *rows[3];
        for (int k = 0; k < 3; k++) rows[k] = marks + mirrored(y + k - 1, height) * width;
        const uint8_t *in = plane + y * width;
        for (int64_t start = 0; start < width; start += BLOCK) {
            int64_t end = width - start < BLOCK ? width : start + BLOCK;
            int64_t left = start ? start - 1 : 0, right = end < width ? end + 1 : end, count = right - left;
            uint8_t *to = out + y * width;
            if (!stands_between(rows[0] + left, count) && !stands_between(rows[1] + left, count) && !stands_between(rows[2] + left, count)) {
                memcpy(to + start, in + start, end - start);
                continue;
            }
            double down[BLOCK + 2]; /* blurred along the columns, from start - 1 */
            for (int64_t n = 0; n < count; n++)
                down[left - start + 1 + n] =
                    kernel[0] * rows[0][left + n] + kernel[1] * rows[1][left + n] + kernel[2] * rows[2][left + n];
            if (!start) down[0] = down[width > 1 ? 2 : 1];
            if (end == width) down[end - start + 1] = width > 1 ? down[end - start - 1] : down[1];
            for (int64_t n = 0; n < end - start; n++) {
                float glow = (float)((kernel[0] * down[n] + kernel[1] * down[n + 1] + kernel[2] * down[n + 2]) * 0x1p-32);
                to[start + n] = truncated((float)in[start + n] + scale * glow * level);
            }
        }
    }
}
