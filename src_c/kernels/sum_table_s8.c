/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/blocks.h"

#define FRACTION_BITS 20

/* Compilers do not generate this instruction by themselves. */
static inline int8_t stored(int32_t value)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    int32_t result;
    __asm__("ssat %0, #8, %1, asr %2" : "=r"(result) : "r"(value), "I"(FRACTION_BITS));
    return (int8_t)result;
#else
    int32_t whole = value >> FRACTION_BITS;
    return (int8_t)(whole < INT8_MIN ? INT8_MIN : whole > INT8_MAX ? INT8_MAX : whole);
#endif
}

static void add(const struct ferrule_sum_table_params *params, const int8_t *a, const int8_t *b,
                int8_t *output, int32_t extent)
{
    const int32_t *first = params->first;
    const int32_t *second = params->second;
    int32_t i = 0;

    for (; i < extent - 3; i += 4) {
        output[i] = stored(first[(uint8_t)a[i]] + second[(uint8_t)b[i]]);
        output[i + 1] = stored(first[(uint8_t)a[i + 1]] + second[(uint8_t)b[i + 1]]);
        output[i + 2] = stored(first[(uint8_t)a[i + 2]] + second[(uint8_t)b[i + 2]]);
        output[i + 3] = stored(first[(uint8_t)a[i + 3]] + second[(uint8_t)b[i + 3]]);
    }
    for (; i < extent; ++i) {
        output[i] = stored(first[(uint8_t)a[i]] + second[(uint8_t)b[i]]);
    }
}

void ferrule_sum_table_s8(const struct ferrule_sum_table_params *params, const int8_t *first,
                          const int8_t *second, int8_t *output)
{
    struct ferrule_blocks blocks;

    ferrule_blocks_begin(&blocks, &params->shape, first, second);
    while (ferrule_blocks_next(&blocks)) {
        add(params, blocks.first.elements, blocks.second.elements, output, blocks.count);
        output += blocks.count;
    }
}
