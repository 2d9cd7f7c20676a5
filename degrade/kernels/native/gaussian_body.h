/* The part of gaussian.c that multiplies in pairs, included once for each vector width: NAME(stem), TARGET, BYTES, MULTIPLY_ADD(a, b),
   which are used up. The kernel is in pairs of 16-bit weights, `count` of them, between two pairs of zeros. */

typedef int32_t NAME(int32x) __attribute__((vector_size(BYTES)));
typedef int32_t NAME(anywhere) __attribute__((vector_size(BYTES), aligned(2), may_alias));

#define LANES (BYTES / 4)
#define AT(address) ((NAME(int32x)) * (const NAME(anywhere) *)(address))

/* Outputs at even and at odd places are summed apart: pairs of neighbours begin at each. */
TARGET static void NAME(line)(const int16_t *line, const int32_t *pairs, int64_t count, uint16_t *out, int64_t width) {
    enum { OUTPUTS = 4 * LANES };
    for (int64_t x = 0; x < width; x += OUTPUTS) {
        NAME(int32x) even[2] = {0}, odd[2] = {0}, result[2];
        for (int64_t n = 0; n < count; n++) {
            NAME(int32x) pair = pairs[n] - (NAME(int32x)){0};
            const int16_t *from = line + x + 2 * n;
            even[0] += MULTIPLY_ADD(AT(from), pair);
            odd[0] += MULTIPLY_ADD(AT(from + 1), pair);
            even[1] += MULTIPLY_ADD(AT(from + 2 * LANES), pair);
            odd[1] += MULTIPLY_ADD(AT(from + 2 * LANES + 1), pair);
        }
        for (int n = 0; n < 2; n++) result[n] = (((even[n] + 128) >> 8) & 0xffff) | (((odd[n] + 128) >> 8) << 16);
        memcpy(out + x, result, (width - x < OUTPUTS ? width - x : OUTPUTS) * sizeof *out);
    }
}

/* Each row is paired with the one below, and what is stored made signed, which takes 2^31 from each sum. Two outputs two rows apart share
   what they read. */
TARGET static void NAME(columns)(const uint16_t *stored, const int32_t *pairs, int64_t count, uint8_t *out, uint32_t *strip, double factor,
                                 int64_t height, int64_t width, int64_t reach, int64_t first, int64_t last) {
    enum { VECTORS = BLOCK / LANES, SHARE = VECTORS < 4 ? VECTORS : 4 };
    int64_t rows = (last - first + 3) / 4 * 4 + 2 * count - 1;
    for (int64_t x = 0; x < width; x += BLOCK) {
        const uint16_t *row = stored + mirrored(first - reach, height) * width + x;
        for (int64_t n = 0; n < rows; n++) {
            const uint16_t *below = stored + mirrored(first + n + 1 - reach, height) * width + x;
            for (int64_t lane = 0; lane < BLOCK; lane++)
                strip[n * BLOCK + lane] = ((uint32_t)row[lane] | (uint32_t)below[lane] << 16) ^ 0x80008000u;
            row = below;
        }
        for (int64_t done = 0; done < last - first; done += done % 4 ? 3 : 1) {
            int64_t y = first + done;
            uint32_t total[2][BLOCK];
            for (int at = 0; at < VECTORS; at += SHARE) {
                const uint32_t *from = strip + done * BLOCK + at * LANES;
                NAME(int32x) upper[SHARE] = {0}, lower[SHARE] = {0};
                for (int64_t n = 0; n <= count; n++) {
                    NAME(int32x) pair = pairs[n] - (NAME(int32x)){0}, earlier = pairs[n - 1] - (NAME(int32x)){0};
                    for (int v = 0; v < SHARE; v++) {
                        NAME(int32x) here = AT(from + 2 * n * BLOCK + v * LANES);
                        upper[v] += MULTIPLY_ADD(here, pair);
                        lower[v] += MULTIPLY_ADD(here, earlier);
                    }
                }
                memcpy(total[0] + at * LANES, upper, sizeof upper);
                memcpy(total[1] + at * LANES, lower, sizeof lower);
            }
            for (int n = 0; n < 2 && y + 2 * n < last; n++) {
                for (int lane = 0; lane < BLOCK; lane++) total[n][lane] += 1u << 31;
                finish(total[n], out + (y + 2 * n) * width + x, factor, width - x < BLOCK ? width - x : BLOCK);
            }
        }
    }
}

#undef LANES
#undef AT
#undef NAME
#undef TARGET
#undef BYTES
#undef MULTIPLY_ADD
