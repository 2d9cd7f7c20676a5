/* Spans painted on a canvas, and canvases laid over byte images; what is computed is stated in degrade/kernels/marks.py and raster.py. */
#include "native.h"

#include <string.h>

enum { BLOCK = 64 }; /* columns that are passed over at once where nothing stands */

static inline int stands_between(const uint8_t *marks, int64_t count) {
    uint8_t any = 0;
    for (int64_t n = 0; n < count; n++) any |= marks[n];
    return any != 0;
}

/* Span n covers first[n]..last[n] of row[n] on canvas number[n], and has `channels` levels; later spans cover earlier ones. */
void degrade_paint(const int64_t *number, const int64_t *row, const int64_t *first, const int64_t *last, const uint8_t *levels,
                   uint8_t *canvases, int64_t count, int64_t channels, int64_t height, int64_t width) {
    for (int64_t n = 0; n < count; n++) {
        int64_t start = first[n] > 0 ? first[n] : 0, end = last[n] < width - 1 ? last[n] : width - 1;
        if (start > end) continue;
        for (int64_t c = 0; c < channels; c++)
            memset(canvases + ((number[n] * channels + c) * height + row[n]) * width + start, levels[n * channels + c], end - start + 1);
    }
}

/* out: the layer where cover is not 0, else the plane. */
VECTOR_CLONES void degrade_cover(const uint8_t *restrict plane, const uint8_t *restrict layer, const uint8_t *restrict cover,
                                 uint8_t *restrict out, int64_t count) {
    memcpy(out, plane, count);
    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t length = count - start < BLOCK ? count - start : BLOCK;
        if (stands_between(cover + start, length))
            for (int64_t n = start; n < start + length; n++) out[n] = cover[n] ? layer[n] : plane[n];
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
