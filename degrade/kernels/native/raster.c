/* Filled marks and strokes painted on a plane, each with its own level; what is computed is stated in degrade/kernels/raster.py.
   Positions are whole pixels or units of 1/65536 pixel, x before y; what lies outside the plane is left out. */
#include "native.h"

#include <math.h>
#include <string.h>

enum { BITS = 16, UNIT = 1 << BITS };

typedef struct {
    uint8_t *pixels;
    int64_t height, width;
    uint8_t level;
} Brush;

static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* The pixel of a position in units, rounded half up. */
static inline int64_t pixel(int64_t units) { return (units + UNIT / 2) >> BITS; }

/* The row is one of the plane's, the columns need not be. */
static inline void paint_span(const Brush *brush, int64_t row, int64_t first, int64_t last) {
    first = larger(first, 0), last = smaller(last, brush->width - 1);
    if (first <= last) memset(brush->pixels + row * brush->width + first, brush->level, last - first + 1);
}

static inline void paint_point(const Brush *brush, int64_t x, int64_t y) {
    if (x >= 0 && x < brush->width && y >= 0 && y < brush->height) brush->pixels[y * brush->width + x] = brush->level;
}

static void paint_disc(const Brush *brush, int64_t x, int64_t y, int64_t radius) {
    int64_t end = smaller(y + radius + 1, brush->height);
    for (int64_t row = larger(y - radius, 0); row < end; row++) {
        int64_t half = (int64_t)sqrt((double)(radius * radius - (row - y) * (row - y)));
        paint_span(brush, row, x - half, x + half);
    }
}

static inline void swap(int64_t *a, int64_t *b) {
    int64_t kept = *a;
    *a = *b, *b = kept;
}

static inline void swap_ends(int64_t ends[2][2]) {
    for (int axis = 0; axis < 2; axis++) swap(&ends[0][axis], &ends[1][axis]);
}

static inline void swap_axes(int64_t ends[2][2]) {
    for (int end = 0; end < 2; end++) swap(&ends[end][0], &ends[end][1]);
}

/* Cuts a line to 0..limit, rows first, moves truncated towards zero; whether anything is left of it. */
static int cut(int64_t ends[2][2], const int64_t limit[2]) {
    for (int axis = 1; axis >= 0; axis--) {
        for (int n = 0; n < 2; n++) {
            if (ends[0][n] < 0 && ends[1][n] < 0) return 0;
            if (ends[0][n] > limit[n] && ends[1][n] > limit[n]) return 0;
        }
        for (int end = 0; end < 2; end++) {
            int64_t target = smaller(larger(ends[end][axis], 0), limit[axis]), gap = target - ends[end][axis];
            if (!gap) continue;
            double across = (double)(ends[1][1 - axis] - ends[0][1 - axis]), along = (double)(ends[1][axis] - ends[0][axis]);
            ends[end][1 - axis] += (int64_t)((double)gap * across / along);
            ends[end][axis] = target;
        }
    }
    for (int end = 0; end < 2; end++)
        for (int n = 0; n < 2; n++)
            if (ends[end][n] < 0 || ends[end][n] > limit[n]) return 0;
    return 1;
}

/* A line one pixel thick, ends in pixels, from the end of smaller x; on a tie the minor coordinate does not step. */
static void paint_thin(const Brush *brush, int64_t ends[2][2]) {
    const int64_t limit[2] = {brush->width - 1, brush->height - 1};
    if (!cut(ends, limit)) return;
    if (ends[1][0] < ends[0][0]) swap_ends(ends);
    int steep = llabs(ends[1][1] - ends[0][1]) > ends[1][0] - ends[0][0];
    if (steep) swap_axes(ends); /* so that the first coordinate is the one that steps */
    int64_t major = ends[1][0] - ends[0][0], minor = ends[1][1] - ends[0][1], length = llabs(major), rise = llabs(minor);
    for (int64_t step = 0; step <= length; step++) {
        int64_t risen = length ? (2 * rise * step + length - 1) / (2 * length) : 0;
        int64_t a = ends[0][0] + (major < 0 ? -step : step), b = ends[0][1] + (minor < 0 ? -risen : risen);
        paint_point(brush, steep ? b : a, steep ? a : b);
    }
}

/* The pixels along a line, ends in units. */
static void paint_side(const Brush *brush, int64_t ends[2][2]) {
    const int64_t limit[2] = {brush->width * UNIT - 1, brush->height * UNIT - 1};
    if (!cut(ends, limit)) return;
    int steep = llabs(ends[1][0] - ends[0][0]) <= llabs(ends[1][1] - ends[0][1]);
    if (steep) swap_axes(ends);
    if (ends[1][0] < ends[0][0]) swap_ends(ends);
    int64_t major = ends[1][0] - ends[0][0], slope = (ends[1][1] - ends[0][1]) * UNIT / (major | 1);
    int64_t a = pixel(ends[0][0]), b = ends[0][1];
    for (int64_t step = 0; step <= major / UNIT; step++, a++, b += slope)
        paint_point(brush, steep ? pixel(b) : a, steep ? a : pixel(b));
    a = pixel(ends[1][0]), b = pixel(ends[1][1]);
    paint_point(brush, steep ? b : a, steep ? a : b);
}

/* The rows of a convex shape between its sides, corners in units: every row meets two sides. */
static void paint_inside(const Brush *brush, int64_t corners[4][2]) {
    int64_t top[4], bottom[4], start[4], slope[4], first = brush->height, end = 0;
    for (int n = 0; n < 4; n++) {
        const int64_t *upper = corners[(n + 3) % 4], *lower = corners[n];
        if (pixel(lower[1]) <= pixel(upper[1])) upper = corners[n], lower = corners[(n + 3) % 4];
        top[n] = pixel(upper[1]), bottom[n] = pixel(lower[1]), start[n] = upper[0];
        int64_t rows = larger(bottom[n] - top[n], 1);
        slope[n] = (2 * (lower[0] - upper[0]) + rows) / (2 * rows);
        first = smaller(first, top[n]), end = larger(end, bottom[n]);
    }
    end = smaller(end, brush->height);
    for (int64_t row = larger(first, 0); row < end; row++) {
        int64_t left = INT64_MAX, right = INT64_MIN;
        for (int n = 0; n < 4; n++) {
            if (row < top[n] || row >= bottom[n]) continue;
            int64_t x = start[n] + (row - top[n]) * slope[n];
            left = smaller(left, x), right = larger(right, x);
        }
        if (left <= right) paint_span(brush, row, pixel(left), pixel(right));
    }
}

/* A stroke of thickness 2 and more, ends in units: a disc at each end and a rectangle between them. */
static void paint_thick(const Brush *brush, int64_t ends[2][2], int64_t thickness) {
    int64_t half = (thickness + 1) / 2;
    for (int end = 0; end < 2; end++) paint_disc(brush, pixel(ends[end][0]), pixel(ends[end][1]), half);
    if (ends[0][0] == ends[1][0] && ends[0][1] == ends[1][1]) return;
    double dx = (double)(ends[0][0] - ends[1][0]) / UNIT, dy = (double)(ends[1][1] - ends[0][1]) / UNIT;
    double scale = (double)half * UNIT / sqrt(dx * dx + dy * dy);
    const int64_t offset[2] = {(int64_t)rint(dy * scale), (int64_t)rint(dx * scale)};
    int64_t corners[4][2];
    for (int axis = 0; axis < 2; axis++) {
        corners[0][axis] = ends[0][axis] + offset[axis], corners[1][axis] = ends[0][axis] - offset[axis];
        corners[2][axis] = ends[1][axis] - offset[axis], corners[3][axis] = ends[1][axis] + offset[axis];
    }
    for (int n = 0; n < 4; n++) {
        int64_t side[2][2];
        memcpy(side[0], corners[(n + 3) % 4], sizeof side[0]), memcpy(side[1], corners[n], sizeof side[1]);
        paint_side(brush, side);
    }
    paint_inside(brush, corners);
}

/* Rows x y radius level, in pixels. */
void degrade_paint_circles(const int64_t *marks, uint8_t *plane, int64_t count, int64_t height, int64_t width) {
    for (int64_t n = 0; n < count; n++, marks += 4) {
        const Brush brush = {plane, height, width, (uint8_t)marks[3]};
        paint_disc(&brush, marks[0], marks[1], marks[2]);
    }
}

/* Rows x1 y1 x2 y2 thickness level, ends in units; those of thickness 1 go from pixel to pixel. */
void degrade_paint_strokes(const int64_t *marks, uint8_t *plane, int64_t count, int64_t height, int64_t width) {
    for (int64_t n = 0; n < count; n++, marks += 6) {
        const Brush brush = {plane, height, width, (uint8_t)marks[5]};
        int64_t ends[2][2] = {{marks[0], marks[1]}, {marks[2], marks[3]}};
        if (marks[4] > 1) {
            paint_thick(&brush, ends, marks[4]);
        } else {
            for (int end = 0; end < 2; end++) ends[end][0] = pixel(ends[end][0]), ends[end][1] = pixel(ends[end][1]);
            paint_thin(&brush, ends);
        }
    }
}

/* Rows x y reach area p q level: the ellipse p dx^2 + 2 q dx dy + r dy^2 <= 1, where p r - q^2 = 1 / area^2, `reach` rows up and down. */
void degrade_paint_ellipses(const double *marks, uint8_t *plane, int64_t count, int64_t height, int64_t width) {
    for (int64_t n = 0; n < count; n++, marks += 7) {
        const Brush brush = {plane, height, width, (uint8_t)marks[6]};
        const double x = marks[0], area = marks[3], p = marks[4], q = marks[5];
        int64_t y = (int64_t)marks[1], reach = (int64_t)marks[2], end = smaller(y + reach + 1, height);
        for (int64_t row = larger(y - reach, 0); row < end; row++) {
            double dy = (double)(row - y), centre = x - q * dy / p, squared = p - dy / area * (dy / area);
            double half = sqrt(squared > 0 ? squared : 0) / p;
            paint_span(&brush, row, (int64_t)ceil(centre - half), (int64_t)floor(centre + half));
        }
    }
}
