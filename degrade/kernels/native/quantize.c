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

/* factors: one for each row. */
void degrade_scale_rows(const uint8_t *in, const double *factors, uint8_t *out, int64_t height, int64_t width) {
    for (int64_t y = 0; y < height; y++) {
        if (factors[y] == 1)
            memcpy(out + y * width, in + y * width, width);
        else
            scale(in + y * width, out + y * width, factors[y], width);
    }
}
