/* Telea's fast-marching inpainting as OpenCV 4 computes it (radius 3): the march over the mask, its edge, the fill, and its adjoint.
 *
 * Maps are padded by PAD on every side, so that no neighbour needs a bounds check.  Pixels of the frame (the first padding ring) are
 * known for distances and gradients but do not enter the sums.
 */
#include "native.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { RADIUS = 3, PAD = RADIUS + 1, NEIGHBOURS = 28 };
enum { UNKNOWN = 0, KNOWN = 1, FRAME = 2, RING = 3 };

static const float FAR = 1e6f;
static const int32_t NEVER = INT32_MAX;

/* ---------------------------------------------------------------------------------------------------------------- queue */

/* A priority queue of pixels by (distance, arrival): keys with the bits of the distance, which is not negative, above the number of the
 * arrival. Most arrive in order: they stand in a line, and only the others in a binary heap. */
typedef struct {
    uint64_t *line, *heap;
    size_t first, last, count; /* of the line, from first to last - 1; of the heap */
    uint32_t arrivals;
} Queue;

static void queue_push(Queue *queue, float distance)
{
    uint32_t bits;
    memcpy(&bits, &distance, sizeof bits);
    uint64_t key = ((uint64_t)bits << 32) | queue->arrivals++;
    if (queue->first == queue->last || queue->line[queue->last - 1] < key) {
        queue->line[queue->last++] = key;
        return;
    }
    size_t at = queue->count++;
    while (at > 0 && queue->heap[(at - 1) / 2] > key) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = key;
}

/* The arrival number of the least. */
static uint32_t queue_pop(Queue *queue)
{
    uint64_t *heap = queue->heap;
    if (queue->count == 0 || (queue->first < queue->last && queue->line[queue->first] < heap[0]))
        return (uint32_t)queue->line[queue->first++];
    uint64_t least = heap[0], key = heap[--queue->count];
    size_t at = 0, count = queue->count;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= key)
            break;
        heap[at] = heap[child];
    }
    heap[at] = key;
    return (uint32_t)least;
}

/* ---------------------------------------------------------------------------------------------------------------- march */

/* The eikonal equation solved in the quadrant of a vertical and a horizontal neighbour that are known, in double as in OpenCV. */
static inline float quadrant(double a, double b)
{
    double difference = a - b;
    return (float)(fabs(difference) < 1 ? (a + b + sqrt(2 - difference * difference)) * 0.5 : 1 + (a < b ? a : b));
}

static inline float least_of(float a, float b) { return a < b ? a : b; }

/* The least solution of the four quadrants. Where only one of the two neighbours is known it is 1 + its distance. */
static inline float arrival(const uint8_t *state, const float *distance, int32_t pixel, int32_t stride, uint8_t waiting)
{
    const int32_t beside[4] = {pixel - stride, pixel + stride, pixel - 1, pixel + 1};
    const int known[4] = {state[beside[0]] != waiting, state[beside[1]] != waiting, state[beside[2]] != waiting, state[beside[3]] != waiting};
    float alone = INFINITY, least;
    for (int n = 0; n < 4; n++)
        if (known[n] && !(known[(n ^ 2) & 2] && known[(n ^ 2) | 1]))
            alone = least_of(alone, distance[beside[n]]);
    least = (float)(1 + (double)alone);
    for (int vertical = 0; vertical < 2; vertical++)
        for (int horizontal = 2; horizontal < 4; horizontal++)
            if (known[vertical] && known[horizontal])
                least = least_of(least, quadrant(distance[beside[vertical]], distance[beside[horizontal]]));
    return least;
}

/* March over the pixels whose state is `waiting`, from the `border` ones at the head of `reached`, at distance 0. Pixels reached become
 * KNOWN and are appended to it in that order. Returns their number. */
static int32_t spread(Queue *queue, uint8_t *state, float *distance, int32_t stride, uint8_t waiting, int32_t *reached, int32_t border)
{
    const int32_t steps[4] = {-stride, -1, stride, 1};
    int32_t count = border;
    queue->first = queue->last = queue->count = queue->arrivals = 0;
    for (int32_t i = 0; i < border; i++)
        queue_push(queue, 0);
    while (queue->first < queue->last || queue->count > 0) {
        int32_t from = reached[queue_pop(queue)];
        for (int s = 0; s < 4; s++) {
            int32_t pixel = from + steps[s];
            if (state[pixel] != waiting)
                continue;
            distance[pixel] = arrival(state, distance, pixel, stride, waiting);
            state[pixel] = KNOWN;
            reached[count++] = pixel;
            queue_push(queue, distance[pixel]);
        }
    }
    return count - border;
}

static int touches(const uint8_t *state, int32_t pixel, int32_t stride, uint8_t wanted)
{
    return state[pixel - stride] == wanted || state[pixel - 1] == wanted || state[pixel + stride] == wanted || state[pixel + 1] == wanted;
}

/* A pixel's level is 1 + the largest among the pixels filled before that it reads: those of one level do not read one another. All pixels
 * that read this one are looked at, which lie within RADIUS and beside these; those not yet filled still have level 0. */
VECTOR_CLONES static void levels(int32_t *level, int32_t stride, const int32_t *filled, int32_t count)
{
    enum { LANES = 8 }; /* the neighbourhood from column -PAD on, but for its last column */
    static const int32_t reaches[2 * PAD + 1] = {1, 2, 3, 4, 4, 4, 3, 2, 1};
    int32_t within[2 * PAD + 1][LANES];
    for (int dy = 0; dy <= 2 * PAD; dy++)
        for (int lane = 0; lane < LANES; lane++)
            within[dy][lane] = abs(lane - PAD) <= reaches[dy] ? -1 : 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t *first = level + filled[i] - PAD * stride - PAD;
        int32_t lanes[LANES] = {0}, most = 0;
        for (int dy = 0; dy <= 2 * PAD; dy++)
            for (int lane = 0; lane < LANES; lane++) {
                int32_t other = first[dy * stride + lane] & within[dy][lane];
                lanes[lane] = other > lanes[lane] ? other : lanes[lane];
            }
        for (int lane = 0; lane < LANES; lane++)
            most = lanes[lane] > most ? lanes[lane] : most;
        for (int dy = PAD - 1; dy <= PAD + 1; dy++) {
            int32_t other = first[dy * stride + 2 * PAD];
            most = other > most ? other : most;
        }
        level[filled[i]] = most + 1;
    }
}

/* mask (height, width): not 0 in the hole.  Writes two maps (height, width),
 * order: 0 for known pixels, 1, 2, ... in the order of filling, INT32_MAX for hole pixels that are never filled;
 * distance: signed distance to the border of the hole, 1e6 where the march does not come;
 * and a schedule of the pixels that are filled, in steps of at most `lanes` pixels that do not read one another,
 * pixels: y * width + x, in the order of filling;
 * slots: step * lanes + lane;
 * and result[2]: the numbers of pixels and of steps, both -1 if there is no memory. */
void degrade_inpaint_march(const uint8_t *mask, int64_t height, int64_t width, int64_t lanes, int32_t *order, float *distance,
                           int32_t *pixels, int32_t *slots, int64_t *result)
{
    int32_t stride = (int32_t)width + 2 * PAD;
    size_t size = (size_t)(height + 2 * PAD) * (size_t)stride;
    uint8_t *state = malloc(size);
    float *far = malloc(size * sizeof *far);
    int32_t *reached = malloc(size * sizeof *reached);
    int32_t *level = calloc(size, sizeof *level);
    Queue queue = {.line = malloc(size * sizeof *queue.line), .heap = malloc(size * sizeof *queue.heap)};
    int32_t *counts = NULL;
    result[0] = result[1] = -1;
    if (!state || !far || !reached || !level || !queue.line || !queue.heap)
        goto done;

    memset(state, FRAME, size);
    for (size_t i = 0; i < size; i++)
        far[i] = FAR;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            state[(y + PAD) * stride + x + PAD] = mask[y * width + x] ? UNKNOWN : KNOWN;

    /* Outside: pixels within the square of RADIUS around the hole, but for its known 4-neighbours, where the distance is 0. */
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int32_t pixel = (int32_t)((y + PAD) * stride + x + PAD);
            if (state[pixel] != UNKNOWN || !(touches(state, pixel, stride, KNOWN) || touches(state, pixel, stride, RING)))
                continue;
            for (int32_t dy = -RADIUS; dy <= RADIUS; dy++)
                for (int32_t dx = -RADIUS; dx <= RADIUS; dx++)
                    if (state[pixel + dy * stride + dx] == KNOWN)
                        state[pixel + dy * stride + dx] = RING;
        }
    int32_t border = 0;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int32_t pixel = (int32_t)((y + PAD) * stride + x + PAD);
            if (state[pixel] == RING && touches(state, pixel, stride, UNKNOWN))
                reached[border++] = pixel;
        }
    for (int32_t i = 0; i < border; i++) {
        state[reached[i]] = KNOWN;
        far[reached[i]] = 0;
    }
    int32_t outside = spread(&queue, state, far, stride, RING, reached, border);
    for (int32_t i = border; i < border + outside; i++)
        far[reached[i]] = -far[reached[i]];
    int32_t filled = spread(&queue, state, far, stride, UNKNOWN, reached, border);
    const int32_t *inside = reached + border;

    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            size_t i = (size_t)(y * width + x);
            order[i] = mask[i] ? NEVER : 0;
            distance[i] = far[(y + PAD) * stride + x + PAD];
        }
    counts = calloc((size_t)filled + 2, sizeof *counts);
    if (!counts)
        goto done;
    levels(level, stride, inside, filled);
    for (int32_t i = 0; i < filled; i++) {
        int32_t pixel = inside[i];
        counts[level[pixel]]++;
        pixels[i] = (pixel / stride - PAD) * (int32_t)width + pixel % stride - PAD;
        order[pixels[i]] = i + 1;
    }
    int64_t steps = 0;
    for (int32_t l = 1; l <= filled && counts[l] > 0; l++) {
        int64_t first = steps * lanes;
        steps += (counts[l] + lanes - 1) / lanes;
        counts[l] = (int32_t)first; /* from now on the next free slot */
    }
    for (int32_t i = 0; i < filled; i++)
        slots[i] = counts[level[inside[i]]]++;
    result[0] = filled;
    result[1] = steps;

done:
    free(state);
    free(far);
    free(reached);
    free(level);
    free(queue.line);
    free(queue.heap);
    free(counts);
}

/* schedule (size): the `count` pixels of a march in their slots, -1 elsewhere. */
void degrade_inpaint_schedule(const int32_t *pixels, const int32_t *slots, int64_t count, int32_t *schedule, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        schedule[i] = -1;
    for (int64_t i = 0; i < count; i++)
        schedule[slots[i]] = pixels[i];
}

/* ----------------------------------------------------------------------------------------------------------------- edge */

/* A mask of 0 and 1. */
typedef struct {
    const uint8_t *pixels;
    int64_t height, width;
} Mask;

static const uint8_t *mask_row(const Mask *mask, int64_t y)
{
    y = y < 0 ? 0 : y < mask->height ? y : mask->height - 1;
    return mask->pixels + y * mask->width;
}

/* The 3 x 3 Sobel gradient, the pixels at the border repeated outside. Returns |gx| + |gy|, outside 0. */
static int mask_gradient(const Mask *mask, int64_t y, int64_t x, int *gx, int *gy)
{
    *gx = *gy = 0;
    if (y < 0 || y >= mask->height || x < 0 || x >= mask->width)
        return 0;
    const uint8_t *above = mask_row(mask, y - 1), *here = mask_row(mask, y), *below = mask_row(mask, y + 1);
    int64_t left = x > 0 ? x - 1 : x, right = x + 1 < mask->width ? x + 1 : x;
    *gx = above[right] + 2 * here[right] + below[right] - above[left] - 2 * here[left] - below[left];
    *gy = below[left] + 2 * below[x] + below[right] - above[left] - 2 * above[x] - above[right];
    return abs(*gx) + abs(*gy);
}

static int mask_steepness(const Mask *mask, int64_t y, int64_t x)
{
    int gx, gy;
    return mask_gradient(mask, y, x, &gx, &gy);
}

/* Whether no pixel on either side along the gradient is steeper; of two equal ones across an edge only one stays. */
static int mask_edge(const Mask *mask, int64_t y, int64_t x)
{
    const double tangent = 0.41421356237309503; /* of 22.5 degrees */
    int gx, gy, steepness = mask_gradient(mask, y, x, &gx, &gy);
    if (steepness == 0)
        return 0;
    if (abs(gy) < tangent * abs(gx))
        return steepness > mask_steepness(mask, y, x - 1) && steepness >= mask_steepness(mask, y, x + 1);
    if (abs(gx) < tangent * abs(gy))
        return steepness > mask_steepness(mask, y - 1, x) && steepness >= mask_steepness(mask, y + 1, x);
    int along = (gx < 0) == (gy < 0) ? 1 : -1;
    return steepness > mask_steepness(mask, y - 1, x - along) && steepness > mask_steepness(mask, y + 1, x + along);
}

/* edge (height, width): 1 on the edge of `mask`, of 0 and 1, else 0. */
VECTOR_CLONES void degrade_inpaint_edge(const uint8_t *pixels, int64_t height, int64_t width, uint8_t *edge)
{
    Mask mask = {pixels, height, width};
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *above = mask_row(&mask, y - 1), *here = mask_row(&mask, y), *below = mask_row(&mask, y + 1);
        uint8_t *to = edge + y * width;
        /* First where a gradient can be: where not all of 3 x 3 pixels are equal, and at the border. */
        for (int64_t x = 1; x < width - 1; x++) {
            uint8_t sum = above[x - 1] + above[x] + above[x + 1] + here[x - 1] + here[x] + here[x + 1] + below[x - 1] + below[x] + below[x + 1];
            to[x] = sum != 0 && sum != 9;
        }
        for (int64_t x = 0; x < width; x += width > 1 ? width - 1 : 1)
            to[x] = 1;
        for (uint8_t *at = to; (at = memchr(at, 1, (size_t)(to + width - at))); at++)
            *at = (uint8_t)mask_edge(&mask, y, at - to);
    }
}

/* Bytes times `factor` in [0, 1] without the fraction, where `places` are not 0. */
void degrade_darken(const uint8_t *image, const uint8_t *places, uint8_t *out, double factor, int64_t size)
{
    uint8_t darkened[256];
    for (int level = 0; level < 256; level++)
        darkened[level] = truncated_double(level * factor);
    for (int64_t i = 0; i < size; i++)
        out[i] = places[i] ? darkened[image[i]] : image[i];
}

/* ----------------------------------------------------------------------------------------------------------------- fill */

/* What the filling of one image needs besides colours.  Only the pixels that can be read take part: a box around those to fill, whose
 * frame lies at the frame of the image or is never read. */
typedef struct {
    int32_t top, left, height, width; /* of the box in the image */
    int32_t across; /* the width of the image */
    int32_t stride; /* of the padded maps, and their size */
    size_t size;
    int32_t second_row; /* its first pixel; 0 if there is no second row */
    int second_column; /* whether there is one */
    int32_t offsets[NEIGHBOURS]; /* of the neighbours, in raster order */
    int32_t columns[NEIGHBOURS]; /* from the filled pixel to its neighbour */
    float rx[NEIGHBOURS], ry[NEIGHBOURS]; /* the filled pixel minus its neighbour */
    float cube[NEIGHBOURS]; /* 1 / |r|^3 */
    uint8_t *state;
    float *distance;
    int32_t *filled; /* pixels in the order of filling */
    int32_t count;
} Hole;

/* One neighbour that takes part: the pixel that gives its colour, those whose difference is its gradient, and the weight. */
typedef struct {
    int32_t colour, right, left, below, above;
    float weight, rx, ry, scale_x, scale_y;
} Term;

/* The index in the image of a pixel of the padded maps, and of the first pixel of a row of the box. */
static int64_t hole_index(const Hole *hole, int32_t pixel)
{
    return (int64_t)(pixel / hole->stride - PAD + hole->top) * hole->across + pixel % hole->stride - PAD + hole->left;
}

static int64_t hole_row(const Hole *hole, int32_t y)
{
    return (int64_t)(y + hole->top) * hole->across + hole->left;
}

static void hole_free(Hole *hole)
{
    free(hole->state);
    free(hole->distance);
    free(hole->filled);
}

static void hole_box(Hole *hole, const int32_t *order, int32_t height, int32_t width)
{
    int32_t top = height, bottom = -1, left = width, right = -1;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            int32_t rank = order[(int64_t)y * width + x];
            if (rank == 0 || rank == NEVER)
                continue;
            top = y < top ? y : top;
            bottom = y;
            left = x < left ? x : left;
            right = x > right ? x : right;
        }
    hole->top = top > PAD ? top - PAD : 0;
    hole->left = left > PAD ? left - PAD : 0;
    hole->height = bottom < 0 ? 0 : (bottom + PAD < height ? bottom + PAD + 1 : height) - hole->top;
    hole->width = bottom < 0 ? 0 : (right + PAD < width ? right + PAD + 1 : width) - hole->left;
    hole->across = width;
}

static int hole_make(Hole *hole, const int32_t *order, const float *distance, int64_t image_height, int64_t image_width)
{
    hole_box(hole, order, (int32_t)image_height, (int32_t)image_width);
    int32_t height = hole->height, width = hole->width, stride = hole->stride = width + 2 * PAD;
    hole->second_row = height > 1 ? (PAD + 1) * stride : 0;
    hole->second_column = width > 1;
    size_t size = hole->size = (size_t)(height + 2 * PAD) * (size_t)stride;
    hole->state = calloc(size, 1);
    hole->distance = malloc(size * sizeof *hole->distance);
    hole->filled = malloc(size * sizeof *hole->filled);
    if (!hole->state || !hole->distance || !hole->filled) {
        hole_free(hole);
        return -1;
    }
    int n = 0;
    for (int32_t dy = -RADIUS; dy <= RADIUS; dy++)
        for (int32_t dx = -RADIUS; dx <= RADIUS; dx++) {
            int32_t square = dx * dx + dy * dy;
            if (square == 0 || square > RADIUS * RADIUS)
                continue;
            hole->offsets[n] = dy * stride + dx;
            hole->columns[n] = dx;
            hole->rx[n] = (float)-dx;
            hole->ry[n] = (float)-dy;
            hole->cube[n] = (float)(1 / (square * sqrt((double)square)));
            n++;
        }
    for (int32_t y = -1; y <= height; y++) /* rows of the box and of its frame */
        for (int32_t x = -1; x <= width; x++) {
            int32_t pixel = (y + PAD) * stride + x + PAD;
            hole->state[pixel] = FRAME;
            hole->distance[pixel] = FAR;
        }
    hole->count = 0;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            int32_t pixel = (y + PAD) * stride + x + PAD, rank = order[hole_row(hole, y) + x];
            hole->state[pixel] = rank == 0 ? KNOWN : UNKNOWN;
            hole->distance[pixel] = distance[hole_row(hole, y) + x];
            if (rank != 0 && rank != NEVER) {
                hole->filled[rank - 1] = pixel;
                hole->count++;
            }
        }
    return 0;
}

static float slope(float here, float before, int before_known, float after, int after_known)
{
    if (after_known)
        return before_known ? (after - before) * 0.5f : after - here;
    return before_known ? here - before : 0;
}

/* The neighbours that the filling of `pixel` reads, by their number, and the weights of all. Returns how many these are. */
static inline int hole_neighbours(const Hole *hole, int32_t pixel, int *taken, float *weights)
{
    const uint8_t *state = hole->state;
    const float *distance = hole->distance;
    int32_t stride = hole->stride;
    float here = distance[pixel];
    float tx = slope(here, distance[pixel - 1], state[pixel - 1], distance[pixel + 1], state[pixel + 1]);
    float ty = slope(here, distance[pixel - stride], state[pixel - stride], distance[pixel + stride], state[pixel + stride]);
    int count = 0;
    for (int n = 0; n < NEIGHBOURS; n++) {
        weights[n] = distance[pixel + hole->offsets[n]];
        taken[count] = n;
        count += state[pixel + hole->offsets[n]] == KNOWN;
    }
    for (int n = 0; n < NEIGHBOURS; n++) {
        float along = fabsf(hole->rx[n] * tx + hole->ry[n] * ty);
        float nearness = (float)(1 / (1 + (double)fabsf(weights[n] - here))); /* in double, as in OpenCV */
        weights[n] = hole->cube[n] * nearness * (along > 0.01f ? along : 1e-6f);
    }
    return count;
}

/* Neighbour `n` of `pixel`, which is `to_first` columns away from the first one. */
static inline Term hole_term(const Hole *hole, int32_t pixel, int32_t to_first, int n, float weight)
{
    const uint8_t *state = hole->state;
    int32_t stride = hole->stride, q = pixel + hole->offsets[n];
    /* A difference along the first row (column) is taken on the second, as in OpenCV. */
    int32_t row = q < hole->second_row ? q + stride : q, column = hole->columns[n] == to_first && hole->second_column ? q + 1 : q;
    int right = state[q + 1] != UNKNOWN, left = state[q - 1] != UNKNOWN;
    int below = state[q + stride] != UNKNOWN, above = state[q - stride] != UNKNOWN;
    return (Term){
        .colour = q,
        .right = right ? row + 1 : row,
        .left = left ? row - 1 : row,
        .below = below ? column + stride : column,
        .above = above ? column - stride : column,
        .weight = weight,
        .rx = hole->rx[n],
        .ry = hole->ry[n],
        .scale_x = right && left ? 2 : 1,
        .scale_y = below && above ? 2 : 1,
    };
}

#define REAL float
#define LANES 4
#define NAME(stem) stem##_f32
#define ROUND rintf
#define ROOT sqrtf
#include "inpaint_body.h"
#undef REAL
#undef LANES
#undef NAME
#undef ROUND
#undef ROOT

#define REAL double
#define LANES 2
#define NAME(stem) stem##_f64
#define ROUND rint
#define ROOT sqrt
#include "inpaint_body.h"
