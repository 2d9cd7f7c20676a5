/* Bytes scaled and mixed; what is computed is stated in degrade/kernels/quantize.py. */
#include "native.h"

#include <string.h>

VECTOR_CLONES void degrade_blend(const uint8_t *restrict first, const uint8_t *restrict second, uint8_t *restrict out, double first_weight,
                                 double second_weight, int64_t count) {
    float weight = (float)first_weight, other = (float)second_weight;
    for (int64_t n = 0; n < count; n++) out[n] = rounded((float)first[n] * weight + (float)second[n] * other);
}

VECTOR_CLONES static void scale(const uint8_t *restrict in, uint8_t *restrict out, double factor, int64_t count) {
    for (int64_t n = 0; n < count; n++) out[n] = truncated_double((double)in[n] * factor);
}

VECTOR_CLONES static void scale_fixed(const uint8_t *restrict in, uint8_t *restrict out, uint32_t factor, int64_t count) {
    for (int64_t n = 0; n < count; n++) out[n] = (uint8_t)((in[n] * factor) >> 24);
}

/* The factor in 1/2^24, if that gives the same for all levels; else 0. Whole numbers take a third of the time. */
static uint32_t fixed_factor(double factor) {
    if (!(factor >= 0 && factor < 1)) return 0;
    uint32_t below = (uint32_t)(factor * 0x1p24);
    for (uint32_t fixed = below + 1; fixed && fixed >= below; fixed--) { /* products that are whole are met from one side */
        uint32_t level = 0;
        while (level < 256 && (level * fixed) >> 24 == truncated_double((double)level * factor)) level++;
        if (level == 256) return fixed;
    }
    return 0;
}

/* factors: one for each row. */
void degrade_scale_rows(const uint8_t *in, const double *factors, uint8_t *out, int64_t height, int64_t width) {
    double last = 1;
    uint32_t fixed = 0;
    for (int64_t y = 0; y < height; y++, in += width, out += width) {
        if (factors[y] == 1) {
            memcpy(out, in, width);
            continue;
        }
        if (factors[y] != last) fixed = fixed_factor(last = factors[y]);
        if (fixed)
            scale_fixed(in, out, fixed, width);
        else
            scale(in, out, factors[y], width);
    }
}
