/* The baseline JPEG round trip on one image, in libjpeg-turbo's own arithmetic; every step is stated in degrade/kernels/jpeg.py.

   The lanes of the transforms are blocks: of LANES blocks side by side the pixels of one place stand together. */
#include "native.h"

enum { LANES = 32 };

#define FIXED(value) ((int32_t)((value)*65536 + 0.5))

static const int32_t EVEN[4][4] = {{8192, 8192, 8192, 8192}, {10703, 4433, -4433, -10703}, {8192, -8192, -8192, 8192}, {4433, -10704, 10704, -4433}};
static const int32_t ODD[4][4] = {{11363, 9633, 6437, 2260}, {9633, -2259, -11362, -6436}, {6437, -11362, 2261, 9633}, {2260, -6436, 9633, -11363}};

static inline int64_t up_to(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

static inline int32_t within(int32_t value, int32_t low, int32_t high) { return value < low ? low : value > high ? high : value; }

#define ROW(m, k, a, b, c, d) (m[k][0] * (a) + m[k][1] * (b) + m[k][2] * (c) + m[k][3] * (d))
#define COLUMN(m, k, a, b, c, d) (m[0][k] * (a) + m[1][k] * (b) + m[2][k] * (c) + m[3][k] * (d))

/* Eight values, `step` apart, of each lane; shifted right by `bits`, rounded to nearest. */
static inline void transform(int32_t (*values)[LANES], int step, int bits) {
    const int32_t half = 1 << (bits - 1);
    for (int n = 0; n < LANES; n++) {
        int32_t x0 = values[0][n], x1 = values[step][n], x2 = values[2 * step][n], x3 = values[3 * step][n];
        int32_t x4 = values[4 * step][n], x5 = values[5 * step][n], x6 = values[6 * step][n], x7 = values[7 * step][n];
        int32_t s0 = x0 + x7, s1 = x1 + x6, s2 = x2 + x5, s3 = x3 + x4, d0 = x0 - x7, d1 = x1 - x6, d2 = x2 - x5, d3 = x3 - x4;
        values[0][n] = (ROW(EVEN, 0, s0, s1, s2, s3) + half) >> bits;
        values[step][n] = (ROW(ODD, 0, d0, d1, d2, d3) + half) >> bits;
        values[2 * step][n] = (ROW(EVEN, 1, s0, s1, s2, s3) + half) >> bits;
        values[3 * step][n] = (ROW(ODD, 1, d0, d1, d2, d3) + half) >> bits;
        values[4 * step][n] = (ROW(EVEN, 2, s0, s1, s2, s3) + half) >> bits;
        values[5 * step][n] = (ROW(ODD, 2, d0, d1, d2, d3) + half) >> bits;
        values[6 * step][n] = (ROW(EVEN, 3, s0, s1, s2, s3) + half) >> bits;
        values[7 * step][n] = (ROW(ODD, 3, d0, d1, d2, d3) + half) >> bits;
    }
}

static inline void transform_back(int32_t (*values)[LANES], int step, int bits) {
    const int32_t half = 1 << (bits - 1);
    for (int n = 0; n < LANES; n++) {
        int32_t x0 = values[0][n], x1 = values[step][n], x2 = values[2 * step][n], x3 = values[3 * step][n];
        int32_t x4 = values[4 * step][n], x5 = values[5 * step][n], x6 = values[6 * step][n], x7 = values[7 * step][n];
        int32_t e0 = COLUMN(EVEN, 0, x0, x2, x4, x6) + half, e1 = COLUMN(EVEN, 1, x0, x2, x4, x6) + half;
        int32_t e2 = COLUMN(EVEN, 2, x0, x2, x4, x6) + half, e3 = COLUMN(EVEN, 3, x0, x2, x4, x6) + half;
        int32_t o0 = COLUMN(ODD, 0, x1, x3, x5, x7), o1 = COLUMN(ODD, 1, x1, x3, x5, x7);
        int32_t o2 = COLUMN(ODD, 2, x1, x3, x5, x7), o3 = COLUMN(ODD, 3, x1, x3, x5, x7);
        values[0][n] = (e0 + o0) >> bits;
        values[step][n] = (e1 + o1) >> bits;
        values[2 * step][n] = (e2 + o2) >> bits;
        values[3 * step][n] = (e3 + o3) >> bits;
        values[4 * step][n] = (e3 - o3) >> bits;
        values[5 * step][n] = (e2 - o2) >> bits;
        values[6 * step][n] = (e1 - o1) >> bits;
        values[7 * step][n] = (e0 - o0) >> bits;
    }
}

/* To the nearest multiple of `step` of an eighth of each. In float the quotients are far enough from whole numbers to be exact. */
static inline void quantise(int32_t *values, int32_t step) {
    const float divisor = (float)(8 * step);
    for (int n = 0; n < LANES; n++) {
        int32_t size = values[n] < 0 ? -values[n] : values[n];
        int32_t multiple = (int32_t)((float)(size + 4 * step) / divisor) * step;
        values[n] = values[n] < 0 ? -multiple : multiple;
    }
}

/* A plane with sides that are multiples of 8, through transforms and quantisation, in place. */
VECTOR_CLONES static void blocks_roundtrip(int16_t *plane, const int32_t *table, int64_t height, int64_t width) {
    int32_t values[64][LANES];
    for (int64_t y = 0; y < height; y += 8)
        for (int64_t x = 0; x < width; x += 8 * LANES) {
            int count = (int)(width - x < 8 * LANES ? (width - x) / 8 : LANES);
            int16_t *corner = plane + y * width + x;
            for (int place = 0; place < 64; place++) {
                const int16_t *in = corner + place / 8 * width + place % 8;
                for (int n = 0; n < count; n++) values[place][n] = in[8 * n];
                for (int n = count; n < LANES; n++) values[place][n] = 0;
            }
            for (int row = 0; row < 8; row++) transform(values + 8 * row, 1, 11);
            for (int column = 0; column < 8; column++) transform(values + column, 8, 15);
            for (int place = 0; place < 64; place++) quantise(values[place], table[place]);
            for (int column = 0; column < 8; column++) transform_back(values + column, 8, 11);
            for (int row = 0; row < 8; row++) transform_back(values + 8 * row, 1, 18);
            for (int place = 0; place < 64; place++) {
                int16_t *out = corner + place / 8 * width + place % 8;
                for (int n = 0; n < count; n++) out[8 * n] = (int16_t)within(values[place][n], -128, 127);
            }
        }
}

static inline void extend(int16_t *row, int64_t width, int64_t wanted) {
    for (int64_t x = width; x < wanted; x++) row[x] = row[width - 1];
}

VECTOR_CLONES static void to_ycc(const uint8_t *restrict red, const uint8_t *restrict green, const uint8_t *restrict blue,
                                 int16_t *restrict luma, int16_t *restrict cb, int16_t *restrict cr, int64_t width) {
    for (int64_t x = 0; x < width; x++) {
        int32_t r = red[x], g = green[x], b = blue[x];
        luma[x] = (int16_t)(((FIXED(0.299) * r + FIXED(0.587) * g + FIXED(0.114) * b + 32768) >> 16) - 128);
        cb[x] = (int16_t)((FIXED(0.5) * b - FIXED(0.168735892) * r - FIXED(0.331264108) * g + 32767) >> 16);
        cr[x] = (int16_t)((FIXED(0.5) * r - FIXED(0.418687589) * g - FIXED(0.081312411) * b + 32767) >> 16);
    }
}

VECTOR_CLONES static void downsample(const int16_t *restrict top, const int16_t *restrict bottom, int16_t *restrict out, int64_t width) {
    for (int64_t x = 0; x < width; x++)
        out[x] = (int16_t)((top[2 * x] + top[2 * x + 1] + bottom[2 * x] + bottom[2 * x + 1] + 1 + (x & 1)) >> 2);
}

/* Two samples for each of `width`, of a row and the nearer neighbouring row. sums: scratch of width + 2. */
VECTOR_CLONES static void upsample(const int16_t *restrict row, const int16_t *restrict neighbour, int16_t *restrict sums,
                                   int16_t *restrict out, int64_t width) {
    if (width <= 2) {
        for (int64_t x = 0; x < 2 * width; x++) out[x] = row[x / 2];
        return;
    }
    for (int64_t x = 0; x < width; x++) sums[x + 1] = (int16_t)(3 * row[x] + neighbour[x]);
    sums[0] = sums[1];
    sums[width + 1] = sums[width];
    for (int64_t x = 0; x < width; x++) {
        out[2 * x] = (int16_t)((3 * sums[x + 1] + sums[x] + 8) >> 4);
        out[2 * x + 1] = (int16_t)((3 * sums[x + 1] + sums[x + 2] + 7) >> 4);
    }
}

VECTOR_CLONES static void to_rgb(const int16_t *restrict luma, const int16_t *restrict cb, const int16_t *restrict cr, uint8_t *restrict red,
                                 uint8_t *restrict green, uint8_t *restrict blue, int64_t width) {
    for (int64_t x = 0; x < width; x++) {
        int32_t y = luma[x] + 128, u = cb[x], v = cr[x];
        red[x] = (uint8_t)within(y + ((FIXED(1.402) * v + 32768) >> 16), 0, 255);
        green[x] = (uint8_t)within(y + ((-FIXED(0.34414) * u - FIXED(0.71414) * v + 32768) >> 16), 0, 255);
        blue[x] = (uint8_t)within(y + ((FIXED(1.772) * u + 32768) >> 16), 0, 255);
    }
}

/* image, out: three planes, one after the other; tables: the steps of luminance and chrominance; scratch: int16 values, as many as
   degrade/kernels/jpeg.py reckons: luma, both chroma planes, and five rows. */
void degrade_jpeg_roundtrip(const uint8_t *image, const int32_t *tables, uint8_t *out, int16_t *scratch, int64_t height, int64_t width) {
    int64_t size = height * width, luma_width = up_to(width, 8), luma_height = up_to(height, 8);
    int64_t half_height = (height + 1) / 2, half_width = (width + 1) / 2;
    int64_t chroma_height = up_to(half_height, 8), chroma_width = up_to(half_width, 8), row_size = 2 * chroma_width + 2;
    int16_t *luma = scratch, *chroma[2], *rows[5];
    chroma[0] = luma + luma_height * luma_width;
    chroma[1] = chroma[0] + chroma_height * chroma_width;
    for (int n = 0; n < 5; n++) rows[n] = chroma[1] + chroma_height * chroma_width + n * row_size;

    for (int64_t y = 0; y < luma_height; y++) {
        int64_t from = y < height ? y : height - 1;
        int16_t *cb = rows[y & 1], *cr = rows[2 + (y & 1)];
        to_ycc(image + from * width, image + size + from * width, image + 2 * size + from * width, luma + y * luma_width, cb, cr, width);
        extend(luma + y * luma_width, width, luma_width);
        extend(cb, width, 2 * chroma_width);
        extend(cr, width, 2 * chroma_width);
        if (y & 1 && y / 2 < half_height)
            for (int c = 0; c < 2; c++) downsample(rows[2 * c], rows[2 * c + 1], chroma[c] + y / 2 * chroma_width, chroma_width);
    }
    blocks_roundtrip(luma, tables, luma_height, luma_width);
    for (int c = 0; c < 2; c++) {
        for (int64_t y = half_height; y < chroma_height; y++)
            for (int64_t x = 0; x < chroma_width; x++) chroma[c][y * chroma_width + x] = chroma[c][(half_height - 1) * chroma_width + x];
        blocks_roundtrip(chroma[c], tables + 64, chroma_height, chroma_width);
    }
    for (int64_t y = 0; y < height; y++) {
        int64_t near = y & 1 ? (y / 2 + 1 < half_height ? y / 2 + 1 : y / 2) : (y > 1 ? y / 2 - 1 : 0);
        for (int c = 0; c < 2; c++)
            upsample(chroma[c] + y / 2 * chroma_width, chroma[c] + near * chroma_width, rows[4], rows[c], half_width);
        to_rgb(luma + y * luma_width, rows[0], rows[1], out + y * width, out + size + y * width, out + 2 * size + y * width, width);
    }
}
