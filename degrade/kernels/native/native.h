/* What every source of the compiled library shares. */
#ifndef DEGRADE_NATIVE_H
#define DEGRADE_NATIVE_H

#include <stdint.h>
#include <stdlib.h> /* also tells which C library this is (__GLIBC__) */

/* Compiles a function for several vector widths; the loader picks one by the processor. Needs glibc's indirect functions. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
/* The levels of x86-64 are by abilities; an older compiler knows the widest vectors by one maker's processor alone. */
#if !defined(__clang__) && __GNUC__ >= 12
#define VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define VECTOR_CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#endif
#endif
#endif
#ifndef VECTOR_CLONES
#define VECTOR_CLONES
#endif

/* The pixel that stands at `at` where a line of `length` is continued by its mirror image, the edge pixel not repeated. */
static inline int64_t mirrored(int64_t at, int64_t length) {
    if (length == 1) return 0;
    int64_t period = 2 * (length - 1);
    at %= period;
    if (at < 0) at += period;
    return at < length ? at : period - at;
}

/* To a whole number, ties to even, of a value below 2^22. What is added leaves no room for a fraction; unlike rintf it becomes
   vector instructions on every processor. */
static inline float round_to_even(float value) { return (value + 0x1.8p23f) - 0x1.8p23f; }

/* Clipped to 0..255 as torch.clamp does. */
static inline float clipped(float value) {
    value = value < 0 ? 0 : value;
    return value > 255 ? 255 : value;
}

static inline double clipped_double(double value) {
    value = value < 0 ? 0 : value;
    return value > 255 ? 255 : value;
}

/* Fractions dropped, as torch converts to uint8. By way of int32, for which there are vector instructions. */
static inline uint8_t truncated(float value) { return (uint8_t)(int32_t)clipped(value); }

static inline uint8_t truncated_double(double value) { return (uint8_t)(int32_t)clipped_double(value); }

static inline uint8_t rounded(float value) { return (uint8_t)(int32_t)round_to_even(clipped(value)); }

#endif
