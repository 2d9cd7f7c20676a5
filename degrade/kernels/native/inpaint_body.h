/* The part of inpaint.c that handles colours, included once for each of float and double: REAL, LANES, NAME(stem), ROUND, ROOT.
 * LANES channels (one 16-byte vector) are handled at once, so that each sum still runs over the neighbours in raster order. */

typedef REAL NAME(Lanes) __attribute__((vector_size(LANES * sizeof(REAL))));

typedef struct {
    REAL weight;
    NAME(Lanes) x, y;
    int count;
} NAME(Sums);

/* The value of a pixel before rounding and clipping; and its terms, `sums->count` of them, if `terms` is not NULL. */
static inline NAME(Lanes) NAME(value)(const Hole *hole, int32_t pixel, const NAME(Lanes) *colours, NAME(Sums) *sums, Term *terms)
{
    NAME(Lanes) sum = {0}, x = {0}, y = {0}, length;
    REAL weight = 0;
    float weights[NEIGHBOURS];
    int taken[NEIGHBOURS], count = hole_neighbours(hole, pixel, taken, weights);
    int32_t to_first = PAD - pixel % hole->stride;
    for (int at = 0; at < count; at++) {
        Term t = hole_term(hole, pixel, to_first, taken[at], weights[taken[at]]);
        REAL w = t.weight;
        sum += w * colours[t.colour];
        x += w * ((colours[t.right] - colours[t.left]) * (REAL)t.scale_x) * (REAL)t.rx;
        y += w * ((colours[t.below] - colours[t.above]) * (REAL)t.scale_y) * (REAL)t.ry;
        weight += w;
        if (terms)
            terms[at] = t;
    }
    length = x * x + y * y;
    for (int lane = 0; lane < LANES; lane++)
        length[lane] = length[lane] > 0 ? ROOT(length[lane]) : 1; /* x + y is 0 then */
    *sums = (NAME(Sums)){weight, x, y, count};
    return sum / weight - (x + y) / length + (REAL)0.5;
}

static NAME(Lanes) *NAME(lanes)(const Hole *hole)
{
    return calloc(hole->size, sizeof(NAME(Lanes)));
}

/* Frame pixels have the colour of the image pixel beside them. */
static void NAME(put)(const Hole *hole, NAME(Lanes) *colours, int32_t pixel, NAME(Lanes) value)
{
    const int32_t steps[4] = {-hole->stride, -1, hole->stride, 1};
    colours[pixel] = value;
    for (int s = 0; s < 4; s++)
        if (hole->state[pixel + steps[s]] == FRAME)
            colours[pixel + steps[s]] = value;
}

/* `lanes` channels of an image, of which `image` or `bytes` is the first; `plane` pixels each. */
static void NAME(load)(const Hole *hole, NAME(Lanes) *colours, const REAL *image, const uint8_t *bytes, int64_t plane, int64_t lanes)
{
    int32_t height = hole->height, width = hole->width;
    for (int32_t y = 0; y < height; y++) {
        int64_t row = hole_row(hole, y);
        NAME(Lanes) *to = colours + (y + PAD) * hole->stride + PAD;
        for (int32_t x = 0; x < width; x++) {
            NAME(Lanes) value = {0};
            for (int64_t lane = 0; lane < LANES && lane < lanes; lane++)
                value[lane] = bytes ? (REAL)bytes[row + x + lane * plane] : image[row + x + lane * plane];
            to[x] = value;
        }
    }
    for (int32_t x = 0; x < width; x++)
        for (int32_t y = 0; y < height; y += height > 1 ? height - 1 : 1) {
            int32_t pixel = (y + PAD) * hole->stride + x + PAD;
            NAME(put)(hole, colours, pixel, colours[pixel]);
        }
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x += width > 1 ? width - 1 : 1) {
            int32_t pixel = (y + PAD) * hole->stride + x + PAD;
            NAME(put)(hole, colours, pixel, colours[pixel]);
        }
}

/* Fill one image (channels, height, width) in place: `bytes`, rounded, if that is not NULL, else `image`, not rounded.  Writes 0 to
 * *result, or -1 if there is no memory. */
VECTOR_CLONES void NAME(degrade_inpaint)(REAL *image, uint8_t *bytes, int64_t channels, int64_t height, int64_t width, const int32_t *order,
                        const float *distance, int64_t *result)
{
    Hole hole;
    *result = -1;
    if (hole_make(&hole, order, distance, height, width) != 0)
        return;
    NAME(Lanes) *colours = NAME(lanes)(&hole);
    if (!colours)
        goto done;
    int64_t plane = height * width;
    for (int64_t first = 0; first < channels; first += LANES) {
        int64_t lanes = channels - first < LANES ? channels - first : LANES;
        NAME(load)(&hole, colours, bytes ? NULL : image + first * plane, bytes ? bytes + first * plane : NULL, plane, lanes);
        for (int32_t i = 0; i < hole.count; i++)
            hole.state[hole.filled[i]] = UNKNOWN;
        for (int32_t i = 0; i < hole.count; i++) {
            NAME(Sums) sums;
            int32_t pixel = hole.filled[i];
            NAME(Lanes) value = NAME(value)(&hole, pixel, colours, &sums, NULL);
            int64_t at = first * plane + hole_index(&hole, pixel);
            for (int64_t lane = 0; lane < lanes; lane++) {
                REAL v = bytes ? ROUND(value[lane]) : value[lane];
                v = v < 0 ? 0 : v > 255 ? 255 : v;
                value[lane] = v;
                if (bytes)
                    bytes[at + lane * plane] = (uint8_t)v;
                else
                    image[at + lane * plane] = v;
            }
            NAME(put)(&hole, colours, pixel, value);
            hole.state[pixel] = KNOWN;
        }
    }
    *result = 0;
done:
    free(colours);
    hole_free(&hole);
}

/* What has flowed to a pixel and to the frame pixels that show it; they are left empty. */
static NAME(Lanes) NAME(take)(const Hole *hole, NAME(Lanes) *flow, int32_t pixel)
{
    const int32_t steps[4] = {-hole->stride, -1, hole->stride, 1};
    NAME(Lanes) none = {0}, sum = flow[pixel];
    for (int s = 0; s < 4; s++)
        if (hole->state[pixel + steps[s]] == FRAME)
            sum += flow[pixel + steps[s]];
    NAME(put)(hole, flow, pixel, none);
    return sum;
}

static void NAME(clear_frame)(const Hole *hole, NAME(Lanes) *flow)
{
    NAME(Lanes) none = {0};
    for (size_t i = 0; i < hole->size; i++)
        if (hole->state[i] == FRAME)
            flow[i] = none;
}

/* The adjoint of the unrounded fill that made `filled` of `image`, both (channels, height, width): `gradient`, with respect to
 * `filled`, becomes in place that with respect to `image`.  Writes 0 to *result, or -1 if there is no memory. */
void NAME(degrade_inpaint_adjoint)(const REAL *image, const REAL *filled, REAL *gradient, int64_t channels, int64_t height, int64_t width,
                           const int32_t *order, const float *distance, int64_t *result)
{
    Hole hole;
    *result = -1;
    if (hole_make(&hole, order, distance, height, width) != 0)
        return;
    NAME(Lanes) *colours = NAME(lanes)(&hole), *flow = NAME(lanes)(&hole);
    if (!colours || !flow)
        goto done;
    int64_t plane = height * width;
    for (int64_t first = 0; first < channels; first += LANES) {
        int64_t lanes = channels - first < LANES ? channels - first : LANES;
        NAME(load)(&hole, colours, filled + first * plane, NULL, plane, lanes);
        NAME(load)(&hole, flow, gradient + first * plane, NULL, plane, lanes);
        NAME(clear_frame)(&hole, flow);
        for (int32_t i = 0; i < hole.count; i++)
            hole.state[hole.filled[i]] = KNOWN;
        for (int32_t i = hole.count - 1; i >= 0; i--) {
            Term terms[NEIGHBOURS];
            NAME(Sums) sums;
            NAME(Lanes) before = {0}, to_x, to_y;
            int32_t pixel = hole.filled[i];
            /* Everything stands as it did when this pixel was about to be filled. */
            for (int64_t lane = 0; lane < lanes; lane++)
                before[lane] = image[(first + lane) * plane + hole_index(&hole, pixel)];
            NAME(put)(&hole, colours, pixel, before);
            hole.state[pixel] = UNKNOWN;
            NAME(Lanes) value = NAME(value)(&hole, pixel, colours, &sums, terms), out = NAME(take)(&hole, flow, pixel);
            for (int lane = 0; lane < LANES; lane++) {
                REAL x = sums.x[lane], y = sums.y[lane], square = x * x + y * y;
                if (value[lane] < 0 || value[lane] > 255)
                    out[lane] = 0;
                /* The derivatives of -(x + y) / sqrt(x^2 + y^2) are y (x - y) / (x^2 + y^2)^1.5 and x (y - x) / (x^2 + y^2)^1.5. */
                /* Near its kink the term is held fixed: its slope has no bound there, and slopes multiply from ring to ring. */
                REAL scale = square > sums.weight * sums.weight ? out[lane] / (square * ROOT(square)) : 0;
                to_x[lane] = y * (x - y) * scale;
                to_y[lane] = x * (y - x) * scale;
            }
            out /= sums.weight;
            for (int n = 0; n < sums.count; n++) {
                const Term *t = &terms[n];
                NAME(Lanes) gx = to_x * ((REAL)t->weight * t->scale_x * t->rx), gy = to_y * ((REAL)t->weight * t->scale_y * t->ry);
                flow[t->colour] += out * (REAL)t->weight;
                flow[t->right] += gx;
                flow[t->left] -= gx;
                flow[t->below] += gy;
                flow[t->above] -= gy;
            }
        }
        for (int32_t y = 0; y < hole.height; y++)
            for (int32_t x = 0; x < hole.width; x++) {
                NAME(Lanes) sum = NAME(take)(&hole, flow, (y + PAD) * hole.stride + x + PAD);
                for (int64_t lane = 0; lane < lanes; lane++)
                    gradient[(first + lane) * plane + hole_row(&hole, y) + x] = sum[lane];
            }
    }
    *result = 0;
done:
    free(colours);
    free(flow);
    hole_free(&hole);
}
