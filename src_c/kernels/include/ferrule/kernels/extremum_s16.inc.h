/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The larger or the smaller of two int16. A source file defines FERRULE_KERNEL (its name),
 * FERRULE_BETTER (the comparison by which the first element is taken), FERRULE_WORDS (the operands
 * of SEL for a word of two elements, after the second was subtracted from the first) and
 * FERRULE_VECTORS (assembler for q0 and q1, to q0), then includes this file.
 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/mve.h"

static int32_t dense(const int16_t *first, const int16_t *second, int16_t *output, int32_t count)
{
#if FERRULE_HAS_MVE
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n\t"
                     "1:\n\t"
                     "vldrh.u16 q0, [%[first]], #16\n\t"
                     "vldrh.u16 q1, [%[second]], #16\n\t" FERRULE_VECTORS
                     "vstrh.16 q0, [%[output]], #16\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [first] "+r"(first), [second] "+r"(second), [output] "+r"(output)
                     : [count] "r"(count)
                     : "lr", "q0", "q1", "memory");
    return count;
#elif FERRULE_HAS_DSP
    for (int32_t left = count / 2; left > 0; --left) {
        uint32_t a = ferrule_load_word((const int8_t *)first);
        const uint32_t b = ferrule_load_word((const int8_t *)second);
        uint32_t spare;

        __asm__("ssub16 %1, %0, %2\n\t"
                "sel %0, " FERRULE_WORDS
                : "+r"(a), "=&r"(spare)
                : "r"(b)
                : "cc");
        FERRULE_COPY_WORD(output, &a);
        first += 2;
        second += 2;
        output += 2;
    }
    return count / 2 * 2;
#else
    (void)first;
    (void)second;
    (void)output;
    (void)count;
    return 0;
#endif
}

#define FERRULE_PARAMS ferrule_broadcast
#define FERRULE_SHAPE  params
#define FERRULE_LOCALS
#define FERRULE_RESULT(x, y)                        ((x)FERRULE_BETTER(y) ? (x) : (y))
#define FERRULE_DENSE(first, second, output, count) dense(first, second, output, count)
#include "ferrule/kernels/dense_s16.inc.h"
