/* Saturation scaled in 8-bit HSV, step by step as degrade/kernels/colour.py states it. All choices are between floats: compilers turn
   those into vector instructions. */
#include "native.h"

#include <math.h>

static inline float share(float part, float whole, float scale) {
    float reciprocal = round_to_even(scale * 4096 / (whole > 1 ? whole : 1));
    return floorf(part * reciprocal / 4096 + 0.5f);
}

static inline float stored(float part) { return floorf(clipped(part * 255)); }

/* Red is highest in sectors 5 and 0, middle in 1 and 4, lowest in 2 and 3; green and blue follow by thirds of the circle. */
static inline uint8_t channel(float sector, int third, float highest, float middle, float lowest) {
    float place = sector - 2 * third;
    place = place < 0 ? place + 6 : place;
    place = place < 3 ? place : 5 - place;
    float level = place < 2 ? middle : lowest;
    level = place < 1 ? highest : level;
    return (uint8_t)(int32_t)level;
}

/* Three planes, one after the other, of `size` pixels each; pixels first..last - 1. */
VECTOR_CLONES void degrade_scale_saturation(const uint8_t *restrict in, uint8_t *restrict out, double factor, int64_t size, int64_t first,
                                            int64_t last) {
    const float keep = (float)factor, step = (float)(6.0 / 180.0), unit = (float)(1.0 / 255.0);
    for (int64_t n = first; n < last; n++) {
        float red = in[n], green = in[n + size], blue = in[n + 2 * size];
        float value = red > green ? red : green, least = red < green ? red : green;
        value = value > blue ? value : blue;
        least = least < blue ? least : blue;
        float chroma = value - least;
        float saturation = floorf(share(chroma, value, 255) * keep);
        float red_highest = green - blue, green_highest = blue - red + 2 * chroma, blue_highest = red - green + 4 * chroma;
        float turned = value == green ? green_highest : blue_highest;
        turned = value == red ? red_highest : turned;
        float hue = share(turned, chroma, 30), raised = hue + 180;
        hue = hue < 0 ? raised : hue;

        float turns = hue * step, s = saturation * unit, high = value * unit;
        float sector = floorf(turns), rising = turns - sector, falling = 1 - rising;
        float ramp = sector - 2 * floorf(sector / 2) > 0 ? rising : falling;
        float highest = stored(high), middle = stored(high * (float)(1 - (double)s * (double)ramp)), lowest = stored(high * (1 - s));
        out[n] = channel(sector, 0, highest, middle, lowest);
        out[n + size] = channel(sector, 1, highest, middle, lowest);
        out[n + 2 * size] = channel(sector, 2, highest, middle, lowest);
    }
}
