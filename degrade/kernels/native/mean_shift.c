/* The climbs of mean-shift filtering: see mean_shift_climb_reference in degrade/kernels/mean_shift.py for what is computed. */
#include "native.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 5,
    LANES = 32,      /* columns worked on at once; also the padding behind the planes */
    MAX_WINDOW = 81, /* rows or columns of the largest window: sums of one column fit in 16 bits */
    FAR = 2047       /* squared differences are cut to this: more than any limit, and three of them fit in 16 bits */
};

typedef struct {
    int64_t height, width;
    double spatial;    /* radius of the window */
    int32_t limit;     /* on the squared distance of colours */
} level_t;

typedef struct {
    int32_t row, column, colour[3];
} state_t;

typedef struct {
    int32_t count, row, column, colour[3];
} sums_t;

static inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Sums over the members of the window about a state; columns and rows relative to the first of the window. */
static inline __attribute__((always_inline)) void window_sums(
    const uint16_t *planes, int64_t size, int64_t width, int64_t rows, int64_t columns, const int32_t *centre, int32_t limit, sums_t *sums)
{
    uint16_t c0 = (uint16_t)centre[0], c1 = (uint16_t)centre[1], c2 = (uint16_t)centre[2], most = (uint16_t)limit;
    memset(sums, 0, sizeof *sums);
    for (int64_t first = 0; first < columns; first += LANES) {
        uint16_t inside[LANES], count[LANES] = {0}, below[LANES] = {0}, s0[LANES] = {0}, s1[LANES] = {0}, s2[LANES] = {0};
        for (int k = 0; k < LANES; k++)
            inside[k] = first + k < columns;
        for (int64_t row = 0; row < rows; row++) {
            const uint16_t *p0 = planes + row * width + first, *p1 = p0 + size, *p2 = p1 + size;
            for (int k = 0; k < LANES; k++) {
                uint16_t d0 = p0[k] - c0, d1 = p1[k] - c1, d2 = p2[k] - c2;
                uint16_t q0 = d0 * d0, q1 = d1 * d1, q2 = d2 * d2;
                q0 = q0 < FAR ? q0 : FAR;
                q1 = q1 < FAR ? q1 : FAR;
                q2 = q2 < FAR ? q2 : FAR;
                uint16_t member = -((uint16_t)(q0 + q1 + q2) <= most) & -inside[k];
                below[k] += count[k];
                count[k] -= member;
                s0[k] += p0[k] & member;
                s1[k] += p1[k] & member;
                s2[k] += p2[k] & member;
            }
        }
        for (int k = 0; k < LANES; k++) {
            sums->count += count[k];
            sums->row += (int32_t)(rows - 1) * count[k] - below[k];
            sums->column += (int32_t)(first + k) * count[k];
            sums->colour[0] += s0[k];
            sums->colour[1] += s1[k];
            sums->colour[2] += s2[k];
        }
    }
}

VECTOR_CLONES
static void climb(const uint16_t *planes, const level_t *level, state_t *state)
{
    for (int step = 0; step < STEPS; step++) {
        int64_t top = max((int64_t)rint(state->row - level->spatial), 0);
        int64_t bottom = min((int64_t)rint(state->row + level->spatial), level->height - 1);
        int64_t left = max((int64_t)rint(state->column - level->spatial), 0);
        int64_t right = min((int64_t)rint(state->column + level->spatial), level->width - 1);
        sums_t sums;
        window_sums(planes + top * level->width + left, level->height * level->width, level->width, bottom - top + 1, right - left + 1,
                    state->colour, level->limit, &sums);
        if (sums.count == 0)
            return;
        double scale = 1.0 / sums.count;
        state_t next = {(int32_t)rint((sums.row + top * sums.count) * scale), (int32_t)rint((sums.column + left * sums.count) * scale), {0}};
        int32_t distance = abs(next.row - state->row) + abs(next.column - state->column);
        int32_t change = distance;
        for (int c = 0; c < 3; c++) {
            next.colour[c] = (int32_t)rint(sums.colour[c] * scale);
            int32_t difference = next.colour[c] - state->colour[c];
            change += difference * difference;
        }
        *state = next;
        if (distance == 0 || change <= 1)
            return;
    }
}

/* Filters rows first .. last - 1 of one image: planes of 16 bits, with LANES more values behind them; result likewise, written where wanted. */
void mean_shift_climb(
    const uint16_t *planes, const uint8_t *wanted, int64_t height, int64_t width, int64_t first, int64_t last, double spatial, int64_t limit,
    int16_t *result)
{
    level_t level = {height, width, spatial, (int32_t)limit};
    int64_t size = height * width;
    for (int64_t row = first; row < last; row++)
        for (int64_t column = 0; column < width; column++) {
            int64_t pixel = row * width + column;
            if (!wanted[pixel])
                continue;
            state_t state = {(int32_t)row, (int32_t)column, {planes[pixel], planes[pixel + size], planes[pixel + 2 * size]}};
            climb(planes, &level, &state);
            for (int c = 0; c < 3; c++)
                result[pixel + c * size] = (int16_t)state.colour[c];
        }
}
