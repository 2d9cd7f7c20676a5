/* The climbs of mean-shift filtering; what they compute is stated in degrade/kernels/mean_shift.py.

   Images are three planes, one after the other. The loops over LANES columns are written so that compilers turn each into a
   few vector instructions. */
#include "native.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 5,
    LANES = 32,      /* columns worked on at once; as many values may be read past the end of the planes */
    MAX_COLUMNS = 96 /* of a window, 81, and up to the next multiple of LANES */
};

typedef struct {
    const uint16_t *whole; /* the image in whole levels, or NULL */
    const double *smooth;  /* the image in levels with fractions, where `whole` is NULL */
    int64_t height, width;
    double spatial; /* radius of the window in pixels */
    double limit;   /* greatest squared distance of a member's colour */
} level_t;

typedef struct {
    int64_t row, column;
    double colour[3];
} state_t;

/* Of the members of a window. Rows and columns count from the first of the window. */
typedef struct {
    int64_t count, row, column;
    double colour[3];
} sums_t;

typedef struct {
    int64_t top, left, rows, columns;
} window_t;

static inline window_t window_about(const level_t *level, int64_t row, int64_t column) {
    int64_t top = (int64_t)rint(row - level->spatial), bottom = (int64_t)rint(row + level->spatial);
    int64_t left = (int64_t)rint(column - level->spatial), right = (int64_t)rint(column + level->spatial);
    top = top > 0 ? top : 0;
    left = left > 0 ? left : 0;
    bottom = bottom < level->height ? bottom : level->height - 1;
    right = right < level->width ? right : level->width - 1;
    return (window_t){top, left, bottom - top + 1, right - left + 1};
}

/* In 16 bits: a column of 81 levels, or of row numbers, sums to less than 2^16. */
VECTOR_CLONES
static void whole_sums(const level_t *level, window_t window, const double *centre, sums_t *sums) {
    const uint16_t *start = level->whole + window.top * level->width + window.left;
    int64_t size = level->height * level->width;
    int rows = (int)window.rows, columns = (int)window.columns;
    const uint16_t c0 = (uint16_t)centre[0], c1 = (uint16_t)centre[1], c2 = (uint16_t)centre[2], limit = (uint16_t)level->limit;
    const uint16_t far = 2047; /* above any limit, which is at most 40^2, and small enough to add three of them */
    int total = 0, row_total = 0, column_total = 0, totals[3] = {0};
    for (int first = 0; first < columns; first += LANES) {
        uint16_t inside[LANES], count[LANES] = {0}, earlier[LANES] = {0}, s0[LANES] = {0}, s1[LANES] = {0}, s2[LANES] = {0};
        for (int k = 0; k < LANES; k++) inside[k] = first + k < columns ? 0xffff : 0;
        for (int row = 0; row < rows; row++) {
            const uint16_t *p0 = start + row * level->width + first, *p1 = p0 + size, *p2 = p1 + size;
            for (int k = 0; k < LANES; k++) {
                uint16_t d0 = p0[k] - c0, d1 = p1[k] - c1, d2 = p2[k] - c2;
                uint16_t q0 = d0 * d0, q1 = d1 * d1, q2 = d2 * d2; /* at most 255^2 < 2^16 */
                q0 = q0 < far ? q0 : far;
                q1 = q1 < far ? q1 : far;
                q2 = q2 < far ? q2 : far;
                uint16_t member = -((uint16_t)(q0 + q1 + q2) <= limit) & inside[k]; /* all bits or none; a choice is not vectorised */
                earlier[k] += count[k]; /* a member adds 1 for each row after its own */
                count[k] -= member;
                s0[k] += p0[k] & member;
                s1[k] += p1[k] & member;
                s2[k] += p2[k] & member;
            }
        }
        for (int k = 0; k < LANES; k++) {
            total += count[k];
            row_total += (rows - 1) * count[k] - earlier[k];
            column_total += (first + k) * count[k];
            totals[0] += s0[k];
            totals[1] += s1[k];
            totals[2] += s2[k];
        }
    }
    *sums = (sums_t){total, row_total, column_total, {totals[0], totals[1], totals[2]}};
}

VECTOR_CLONES
static void smooth_sums(const level_t *level, window_t window, const double *centre, sums_t *sums) {
    const double *start = level->smooth + window.top * level->width + window.left;
    int64_t size = level->height * level->width;
    int rows = (int)window.rows, columns = (int)window.columns;
    const double c0 = centre[0], c1 = centre[1], c2 = centre[2], limit = level->limit;
    double count[MAX_COLUMNS] = {0}, earlier[MAX_COLUMNS] = {0}, s0[MAX_COLUMNS] = {0}, s1[MAX_COLUMNS] = {0}, s2[MAX_COLUMNS] = {0};
    for (int row = 0; row < rows; row++) {
        const double *p0 = start + row * level->width, *p1 = p0 + size, *p2 = p1 + size;
        for (int k = 0; k < columns; k++) {
            double d0 = p0[k] - c0, d1 = p1[k] - c1, d2 = p2[k] - c2;
            double member = d0 * d0 + d1 * d1 + d2 * d2 <= limit ? 1 : 0;
            earlier[k] += count[k];
            count[k] += member;
            s0[k] += p0[k] * member;
            s1[k] += p1[k] * member;
            s2[k] += p2[k] * member;
        }
    }
    *sums = (sums_t){0};
    for (int k = 0; k < columns; k++) {
        sums->count += (int64_t)count[k];
        sums->row += (rows - 1) * (int64_t)count[k] - (int64_t)earlier[k];
        sums->column += k * (int64_t)count[k];
        sums->colour[0] += s0[k];
        sums->colour[1] += s1[k];
        sums->colour[2] += s2[k];
    }
}

/* Moves `state` to the end of its climb. Returns how many members the last window had, and in `last` its centre. */
static int64_t climb(const level_t *level, state_t *state, state_t *last) {
    int64_t members = 0;
    for (int step = 0; step < STEPS; step++) {
        window_t window = window_about(level, state->row, state->column);
        sums_t sums;
        if (level->whole)
            whole_sums(level, window, state->colour, &sums);
        else
            smooth_sums(level, window, state->colour, &sums);
        if (sums.count == 0) break;
        members = sums.count;
        *last = *state;
        double scale = 1.0 / (double)members;
        state->row = (int64_t)rint((double)(sums.row + window.top * members) * scale);
        state->column = (int64_t)rint((double)(sums.column + window.left * members) * scale);
        double distance = (double)(llabs(state->row - last->row) + llabs(state->column - last->column)), change = 0;
        for (int c = 0; c < 3; c++) {
            double colour = sums.colour[c] * scale;
            state->colour[c] = level->whole ? rint(colour) : colour;
            change += (state->colour[c] - last->colour[c]) * (state->colour[c] - last->colour[c]);
        }
        if (distance == 0 || distance + change <= 1) break;
    }
    return members;
}

/* Filters the wanted pixels of rows first_row .. last_row - 1 of one image, `whole` or `smooth` (the other is NULL).
   result, three planes: the colours. windows, NULL or six planes: row, column and colour that each pixel's last window was about, and
   how many members it had. */
void degrade_mean_shift_climb(const uint16_t *whole, const double *smooth, const uint8_t *wanted, int64_t height, int64_t width,
                              int64_t first_row, int64_t last_row, double spatial, double limit, double *result, double *windows) {
    const level_t level = {whole, smooth, height, width, spatial, limit};
    int64_t size = height * width;
    for (int64_t pixel = first_row * width; pixel < last_row * width; pixel++) {
        if (!wanted[pixel]) continue;
        state_t state = {pixel / width, pixel % width, {0}};
        for (int c = 0; c < 3; c++) state.colour[c] = whole ? whole[pixel + c * size] : smooth[pixel + c * size];
        state_t last = state;
        int64_t members = climb(&level, &state, &last);
        for (int c = 0; c < 3; c++) result[pixel + c * size] = state.colour[c];
        if (windows) {
            const double values[6] = {(double)last.row, (double)last.column, last.colour[0], last.colour[1], last.colour[2], (double)members};
            for (int k = 0; k < 6; k++) windows[pixel + k * size] = values[k];
        }
    }
}

VECTOR_CLONES
static void share_out(const double *restrict p0, const double *restrict p1, const double *restrict p2, const double *centre, double limit,
                      const double *share, int64_t columns, double *restrict r0, double *restrict r1, double *restrict r2) {
    const double c0 = centre[0], c1 = centre[1], c2 = centre[2], g0 = share[0], g1 = share[1], g2 = share[2];
    for (int64_t k = 0; k < columns; k++) {
        double d0 = p0[k] - c0, d1 = p1[k] - c1, d2 = p2[k] - c2;
        double member = d0 * d0 + d1 * d1 + d2 * d2 <= limit ? 1 : 0;
        r0[k] += g0 * member;
        r1[k] += g1 * member;
        r2[k] += g2 * member;
    }
}

/* Adds to `result` the gradient of one image: each wanted pixel's, shared out evenly among the members of its last window. */
void degrade_mean_shift_climb_backward(const double *image, const uint8_t *wanted, int64_t height, int64_t width, double spatial,
                                       double limit, const double *windows, const double *gradient, double *result) {
    const level_t level = {NULL, image, height, width, spatial, limit};
    int64_t size = height * width;
    for (int64_t pixel = 0; pixel < size; pixel++) {
        if (!wanted[pixel]) continue;
        const double *at = windows + pixel;
        window_t window = window_about(&level, (int64_t)at[0], (int64_t)at[size]);
        const double centre[3] = {at[2 * size], at[3 * size], at[4 * size]};
        double share[3];
        for (int c = 0; c < 3; c++) share[c] = gradient[pixel + c * size] / at[5 * size];
        for (int64_t row = window.top; row < window.top + window.rows; row++) {
            const double *p = image + row * width + window.left;
            double *r = result + row * width + window.left;
            share_out(p, p + size, p + 2 * size, centre, limit, share, window.columns, r, r + size, r + 2 * size);
        }
    }
}
