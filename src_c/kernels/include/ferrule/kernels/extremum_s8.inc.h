/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The larger or the smaller of two int8. A source file defines FERRULE_KERNEL (its name),
 * FERRULE_BETTER (the comparison by which the first element is taken), FERRULE_WORDS(a, b) (the
 * same for the bytes of words) and FERRULE_VECTORS (assembler for q0 and q1, to q0), then includes
 * this file.
 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/blocks.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"

static void select_elements(const int8_t *a, const int8_t *b, int8_t *output, int32_t count)
{
#if FERRULE_HAS_MVE
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n\t"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[a]], #16\n\t"
                     "vldrb.u8 q1, [%[b]], #16\n\t" FERRULE_VECTORS
                     "vstrb.8 q0, [%[output]], #16\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [a] "+r"(a), [b] "+r"(b), [output] "+r"(output)
                     : [count] "r"(count)
                     : "lr", "q0", "q1", "memory");
#else
#if FERRULE_HAS_DSP
    for (; count > 7; count -= 8) {
        const uint32_t low = FERRULE_WORDS(ferrule_load_word(a), ferrule_load_word(b));
        const uint32_t high = FERRULE_WORDS(ferrule_load_word(&a[4]), ferrule_load_word(&b[4]));

        FERRULE_COPY_WORD(output, &low);
        FERRULE_COPY_WORD(&output[4], &high);
        a += 8;
        b += 8;
        output += 8;
    }
#endif
    for (; count > 0; --count) {
        *output++ = *a FERRULE_BETTER * b ? *a : *b;
        ++a;
        ++b;
    }
#endif
}

void FERRULE_KERNEL(const struct ferrule_broadcast *shape, const int8_t *first,
                    const int8_t *second, int8_t *output)
{
    struct ferrule_blocks blocks;

    ferrule_blocks_begin(&blocks, shape, first, second);
    while (ferrule_blocks_next(&blocks)) {
        select_elements(blocks.first.elements, blocks.second.elements, output, blocks.count);
        output += blocks.count;
    }
}
