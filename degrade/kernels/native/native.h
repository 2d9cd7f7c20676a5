/* What every source of the compiled library shares. */
#ifndef DEGRADE_NATIVE_H
#define DEGRADE_NATIVE_H

#include <stdint.h>
#include <stdlib.h> /* also tells which C library this is (__GLIBC__) */

/* Compiles a function for several vector widths; the loader picks one by the processor. Needs glibc's indirect functions. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define VECTOR_CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#endif
#endif
#ifndef VECTOR_CLONES
#define VECTOR_CLONES
#endif

#endif
