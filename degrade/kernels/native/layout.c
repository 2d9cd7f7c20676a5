/* Three planes of `count` bytes, one after the other, to pixels of three bytes. */
#include "native.h"

VECTOR_CLONES void degrade_interleave(const uint8_t *restrict planes, uint8_t *restrict pixels, int64_t count) {
    const uint8_t *red = planes, *green = planes + count, *blue = planes + 2 * count;
    for (int64_t n = 0; n < count; n++) {
        pixels[3 * n] = red[n];
        pixels[3 * n + 1] = green[n];
        pixels[3 * n + 2] = blue[n];
    }
}
