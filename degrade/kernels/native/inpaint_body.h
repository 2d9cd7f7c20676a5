/* The part of inpaint.c that handles colours, included once for each of float and double: REAL, LANES, NAME(stem), ROUND, ROOT.
 * LANES channels (one 16-byte vector) are handled at once, so that each sum still runs over the neighbours in raster order. */

typedef REAL NAME(Lanes) __attribute__((vector_size(LANES * sizeof(REAL))));

/* The value of a pixel before rounding and clipping; the sums are kept for the adjoint. */
static NAME(Lanes) NAME(value)(const Term *terms, int count, const NAME(Lanes) *colours, REAL *total, NAME(Lanes) *jx, NAME(Lanes) *jy)
{
    NAME(Lanes) sum = {0}, x = {0}, y = {0}, length, result;
    REAL weights = 0;
    for (int n = 0; n < count; n++) {
        const Term *t = &terms[n];
        REAL w = t->weight;
        sum += w * colours[t->colour];
        x += w * ((colours[t->right] - colours[t->left]) * (REAL)t->scale_x) * (REAL)t->rx;
        y += w * ((colours[t->below] - colours[t->above]) * (REAL)t->scale_y) * (REAL)t->ry;
        weights += w;
    }
    length = x * x + y * y;
    for (int lane = 0; lane < LANES; lane++)
        length[lane] = length[lane] > 0 ? ROOT(length[lane]) : 1; /* x + y is 0 then */
    result = sum / weights - (x + y) / length + (REAL)0.5;
    *total = weights;
    *jx = x;
    *jy = y;
    return result;
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

static void NAME(load)(const Hole *hole, NAME(Lanes) *colours, const REAL *image, const uint8_t *bytes, int64_t first, int64_t lanes)
{
    int64_t plane = (int64_t)hole->height * hole->width;
    for (int32_t y = 0; y < hole->height; y++)
        for (int32_t x = 0; x < hole->width; x++) {
            NAME(Lanes) value = {0};
            int64_t at = first * plane + (int64_t)y * hole->width + x;
            for (int64_t lane = 0; lane < lanes; lane++)
                value[lane] = bytes ? (REAL)bytes[at + lane * plane] : image[at + lane * plane];
            NAME(put)(hole, colours, (y + PAD) * hole->stride + x + PAD, value);
        }
}

/* Fill one image (channels, height, width) in place: `bytes` if that is not NULL, else `image`.  Returns 0, or -1 without memory. */
int NAME(inpaint_fill)(REAL *image, uint8_t *bytes, int64_t channels, int64_t height, int64_t width, const int32_t *order,
                       const float *distance, int rounded)
{
    Hole hole;
    if (hole_make(&hole, order, distance, height, width) != 0)
        return -1;
    size_t size = (size_t)(height + 2 * PAD) * (size_t)hole.stride;
    NAME(Lanes) *colours = aligned_alloc(sizeof *colours, size * sizeof *colours);
    if (!colours) {
        hole_free(&hole);
        return -1;
    }
    int64_t plane = height * width;
    for (int64_t first = 0; first < channels; first += LANES) {
        int64_t lanes = channels - first < LANES ? channels - first : LANES;
        NAME(load)(&hole, colours, image, bytes, first, lanes);
        for (int32_t i = 0; i < hole.count; i++)
            hole.state[hole.filled[i]] = UNKNOWN;
        for (int32_t i = 0; i < hole.count; i++) {
            Term terms[NEIGHBOURS];
            REAL total;
            NAME(Lanes) jx, jy;
            int32_t pixel = hole.filled[i];
            NAME(Lanes) value = NAME(value)(terms, hole_terms(&hole, pixel, terms), colours, &total, &jx, &jy);
            int64_t at = first * plane + (int64_t)(pixel / hole.stride - PAD) * width + pixel % hole.stride - PAD;
            for (int64_t lane = 0; lane < lanes; lane++) {
                REAL v = rounded ? ROUND(value[lane]) : value[lane];
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
    free(colours);
    hole_free(&hole);
    return 0;
}

/* The adjoint at the image `filled` (channels, height, width), which inpaint_fill made: `gradient` with respect to the filled image
 * becomes, in place, that with respect to the image before.  Rounding counts as the identity.  Returns 0, or -1 without memory. */
int NAME(inpaint_adjoint)(const REAL *filled, REAL *gradient, int64_t channels, int64_t height, int64_t width, const int32_t *order,
                          const float *distance)
{
    Hole hole;
    if (hole_make(&hole, order, distance, height, width) != 0)
        return -1;
    size_t size = (size_t)(height + 2 * PAD) * (size_t)hole.stride;
    NAME(Lanes) *colours = aligned_alloc(sizeof *colours, size * sizeof *colours);
    NAME(Lanes) *flow = aligned_alloc(sizeof *flow, size * sizeof *flow);
    int status = -1;
    if (!colours || !flow)
        goto done;
    status = 0;
    int64_t plane = height * width;
    for (int64_t first = 0; first < channels; first += LANES) {
        int64_t lanes = channels - first < LANES ? channels - first : LANES;
        NAME(load)(&hole, colours, filled, NULL, first, lanes);
        NAME(load)(&hole, flow, gradient, NULL, first, lanes);
        /* A frame pixel shows the pixel beside it; what flows to it goes there at the end of each step. */
        for (int32_t y = -1; y <= hole.height; y++)
            for (int32_t x = -1; x <= hole.width; x++) {
                int32_t pixel = (y + PAD) * hole.stride + x + PAD;
                if (hole.state[pixel] == FRAME)
                    flow[pixel] = (NAME(Lanes)){0};
            }
        for (int32_t i = 0; i < hole.count; i++)
            hole.state[hole.filled[i]] = KNOWN;
        for (int32_t i = hole.count - 1; i >= 0; i--) {
            Term terms[NEIGHBOURS];
            REAL total;
            NAME(Lanes) jx, jy, to_x, to_y;
            int32_t pixel = hole.filled[i];
            const int32_t steps[4] = {-hole.stride, -1, hole.stride, 1};
            NAME(Lanes) out = flow[pixel];
            for (int s = 0; s < 4; s++)
                if (hole.state[pixel + steps[s]] == FRAME)
                    out += flow[pixel + steps[s]];
            hole.state[pixel] = UNKNOWN;
            int count = hole_terms(&hole, pixel, terms);
            NAME(Lanes) value = NAME(value)(terms, count, colours, &total, &jx, &jy);
            for (int lane = 0; lane < LANES; lane++) {
                REAL x = jx[lane], y = jy[lane], square = x * x + y * y;
                if (value[lane] < 0 || value[lane] > 255)
                    out[lane] = 0;
                REAL scale = square > 0 ? out[lane] / (square * ROOT(square)) : 0;
                to_x[lane] = -y * (y - x) * scale;
                to_y[lane] = -x * (x - y) * scale;
            }
            out /= total;
            for (int n = 0; n < count; n++) {
                const Term *t = &terms[n];
                REAL w = t->weight;
                NAME(Lanes) gx = to_x * (w * (REAL)t->scale_x * (REAL)t->rx), gy = to_y * (w * (REAL)t->scale_y * (REAL)t->ry);
                flow[t->colour] += out * w;
                flow[t->right] += gx;
                flow[t->left] -= gx;
                flow[t->below] += gy;
                flow[t->above] -= gy;
            }
            NAME(Lanes) none = {0};
            NAME(put)(&hole, flow, pixel, none);
        }
        for (int32_t y = 0; y < hole.height; y++)
            for (int32_t x = 0; x < hole.width; x++) {
                int32_t pixel = (y + PAD) * hole.stride + x + PAD;
                const int32_t steps[4] = {-hole.stride, -1, hole.stride, 1};
                NAME(Lanes) out = flow[pixel];
                for (int s = 0; s < 4; s++)
                    if (hole.state[pixel + steps[s]] == FRAME)
                        out += flow[pixel + steps[s]];
                for (int64_t lane = 0; lane < lanes; lane++)
                    gradient[(first + lane) * plane + (int64_t)y * width + x] = out[lane];
            }
    }
done:
    free(colours);
    free(flow);
    hole_free(&hole);
    return status;
}
