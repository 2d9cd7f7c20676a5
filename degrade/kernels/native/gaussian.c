/* Separable correlation of byte planes with odd kernels in 1/65536. Sums are exact: 24 bits along the lines, which are stored as
   multiples of 1/256 level, and 32 bits along the columns.

   x86 has an instruction that multiplies pairs of signed 16-bit numbers and adds up each pair, which compilers do not find:
   gaussian_body.h has it for each vector width. It takes weights below 1/2; others, and other processors, go the plain way. */
#include "native.h"

#include <string.h>

enum {
    BLOCK = 64, /* outputs that are summed in registers; scratch has room for so many more than its contents */
    ROWS = 64   /* of which the columns are done at a time, so that what they read stays in the cache */
};

typedef void lines_t(const int16_t *line, const int32_t *pairs, int64_t count, uint16_t *out, int64_t width);
typedef void columns_t(const uint16_t *stored, const int32_t *pairs, int64_t count, uint8_t *out, uint32_t *strip, double factor,
                       int64_t height, int64_t width, int64_t reach, int64_t first, int64_t last);

/* Sums along columns, in 2^-24 levels, to bytes. */
static inline void finish(const uint32_t *total, uint8_t *out, double factor, int64_t count) {
    const double scale = 0x1p-24 * factor; /* powers of two are exact */
    uint8_t result[BLOCK];
    if (factor == 1)
        for (int64_t lane = 0; lane < BLOCK; lane++) result[lane] = (uint8_t)(total[lane] >> 24);
    else
        for (int64_t lane = 0; lane < BLOCK; lane++) result[lane] = truncated_double(total[lane] * scale);
    memcpy(out, result, count);
}

VECTOR_CLONES static void plain_line(const int16_t *line, const int32_t *kernel, int64_t size, uint16_t *out, int64_t width) {
    for (int64_t x = 0; x < width; x += BLOCK) {
        int32_t total[BLOCK] = {0};
        for (int64_t tap = 0; tap < size; tap++)
            for (int64_t lane = 0; lane < BLOCK; lane++) total[lane] += kernel[tap] * line[x + tap + lane];
        int64_t count = width - x < BLOCK ? width - x : BLOCK;
        for (int64_t lane = 0; lane < count; lane++) out[x + lane] = (uint16_t)((total[lane] + 128) >> 8);
    }
}

VECTOR_CLONES static void plain_columns(const uint16_t *stored, const int32_t *kernel, int64_t size, uint8_t *out, uint32_t *strip,
                                        double factor, int64_t height, int64_t width, int64_t reach, int64_t first, int64_t last) {
    for (int64_t x = 0; x < width; x += BLOCK) {
        for (int64_t n = 0; n < last - first + size - 1; n++) {
            const uint16_t *row = stored + mirrored(first + n - reach, height) * width + x;
            for (int64_t lane = 0; lane < BLOCK; lane++) strip[n * BLOCK + lane] = row[lane];
        }
        for (int64_t y = first; y < last; y++) {
            const uint32_t *above = strip + (y - first) * BLOCK;
            uint32_t total[BLOCK] = {0};
            for (int64_t tap = 0; tap < size; tap++)
                for (int64_t lane = 0; lane < BLOCK; lane++) total[lane] += (uint32_t)kernel[tap] * above[tap * BLOCK + lane];
            finish(total, out + y * width + x, factor, width - x < BLOCK ? width - x : BLOCK);
        }
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define NAME(stem) stem##_512
#define TARGET __attribute__((target("avx512f,avx512bw")))
#define BYTES 64
#define MULTIPLY_ADD(a, b) ((int32x_512)_mm512_madd_epi16((__m512i)(a), (__m512i)(b)))
#include "gaussian_body.h"

#define NAME(stem) stem##_256
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#define MULTIPLY_ADD(a, b) ((int32x_256)_mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#include "gaussian_body.h"

#define NAME(stem) stem##_128
#define TARGET
#define BYTES 16
#define MULTIPLY_ADD(a, b) ((int32x_128)_mm_madd_epi16((__m128i)(a), (__m128i)(b)))
#include "gaussian_body.h"

static int paired_bodies(lines_t **line, columns_t **columns) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        *line = line_512, *columns = columns_512;
    else if (__builtin_cpu_supports("avx2"))
        *line = line_256, *columns = columns_256;
    else
        *line = line_128, *columns = columns_128;
    return 1;
}
#else
static int paired_bodies(lines_t **line, columns_t **columns) {
    (void)line, (void)columns;
    return 0;
}
#endif

/* The kernel as the bodies take it, and its length: weights in pairs with a pair of zeros at each end, or as it is. `scratch` holds
   size / 2 + 3 numbers. */
static const int32_t *bodies(const int32_t *kernel, int64_t *size, int32_t *scratch, lines_t **line, columns_t **columns) {
    *line = plain_line, *columns = plain_columns;
    for (int64_t tap = 0; tap < *size; tap++)
        if (kernel[tap] > INT16_MAX || kernel[tap] < INT16_MIN) return kernel;
    if (!paired_bodies(line, columns)) return kernel;
    int64_t count = *size / 2 + 1;
    for (int64_t n = 0; n < count; n++) {
        uint32_t next = 2 * n + 1 < *size ? (uint32_t)kernel[2 * n + 1] : 0;
        scratch[n + 1] = (int32_t)((uint32_t)(uint16_t)kernel[2 * n] | next << 16);
    }
    scratch[0] = scratch[count + 1] = 0;
    *size = count;
    return scratch + 1;
}

/* plane: height x width bytes; stored: height x width, in units of 1/256 level; kernel: size weights in 1/65536; line: scratch of
   width + size + 2 BLOCK. Rows first..last - 1. */
VECTOR_CLONES void degrade_gaussian_lines(const uint8_t *plane, const int32_t *kernel, uint16_t *stored, int16_t *line, int64_t width, int64_t size,
                            int64_t first, int64_t last) {
    int64_t reach = size / 2, end = width + size - 1;
    int32_t scratch[size / 2 + 3];
    lines_t *body;
    columns_t *unused;
    kernel = bodies(kernel, &size, scratch, &body, &unused);
    memset(line + end, 0, (2 * BLOCK + 1) * sizeof *line);
    for (int64_t y = first; y < last; y++) {
        const uint8_t *in = plane + y * width;
        for (int64_t x = 0; x < width; x++) line[reach + x] = in[x];
        for (int64_t x = 0; x < reach; x++) {
            line[x] = in[mirrored(x - reach, width)];
            line[reach + width + x] = in[mirrored(width + x, width)];
        }
        body(line, kernel, size, stored + y * width, width);
    }
}

/* stored: height x width as above, readable for BLOCK values more; out: levels times the factor, fractions dropped; strip: scratch of
   (ROWS + size + 4) BLOCK. Rows first..last - 1. */
void degrade_gaussian_columns(const uint16_t *stored, const int32_t *kernel, uint8_t *out, uint32_t *strip, double factor, int64_t height,
                              int64_t width, int64_t size, int64_t first, int64_t last) {
    int64_t reach = size / 2;
    int32_t scratch[size / 2 + 3];
    lines_t *unused;
    columns_t *body;
    kernel = bodies(kernel, &size, scratch, &unused, &body);
    for (; first < last; first += ROWS)
        body(stored, kernel, size, out, strip, factor, height, width, reach, first, last - first < ROWS ? last : first + ROWS);
}
