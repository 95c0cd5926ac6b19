/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dense_s16.h"

/* Return whether `dense` takes the factor. With the DSP extension, twice the product of two
 * elements of -2^15 does not fit: it becomes 2^31 - 1, which must have the same result. */
static bool is_dense(const struct ferrule_result *result)
{
#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE
    const int32_t right = -result->shift;

    return right > 0 &&
           ferrule_clamp(
               ferrule_dense_scaled(INT32_MAX, result->multiplier, 1 << (right - 1), right),
               result->low, result->high) == ferrule_result(result, INT32_C(1) << 30);
#else
    return result->shift < 0;
#endif
}

static int32_t dense(const struct ferrule_dense_s16 *constants, const int16_t *first,
                     const int16_t *second, int16_t *output, int32_t count)
{
#if FERRULE_HAS_MVE
    int32_t t0;
    int32_t t1;

    __asm__ volatile(FERRULE_DENSE_START "wlstp.32 lr, %[count], 2f\n\t"
                                         "1:\n\t"
                                         "vldrh.s32 q0, [%[first]], #8\n\t"
                                         "vldrh.s32 q1, [%[second]], #8\n\t"
                                         "vmul.i32 q0, q0, q1\n\t" FERRULE_DENSE_FINISH
                                         "letp lr, 1b\n\t"
                                         "2:\n\t"
                     : [first] "+l"(first), [second] "+l"(second), [output] "+l"(output),
                       [t0] "=&r"(t0), [t1] "=&r"(t1)
                     : [constants] "r"(constants), [count] "r"(count)
                     : "lr", "q0", "q1", "q2", "q3", "memory");
    return count;
#elif FERRULE_HAS_DSP
    const int32_t multiplier = constants->multiplier;
    const int32_t right = -constants->shift;
    const int32_t rounding = 1 << (right - 1);
    const uint32_t lows = ferrule_pair(constants->low, constants->low);
    const uint32_t highs = ferrule_pair(constants->high, constants->high);

    for (int32_t left = count / 2; left > 0; --left) {
        uint32_t x;
        uint32_t y;
        int32_t low;
        int32_t high;

        FERRULE_COPY_WORD(&x, first);
        FERRULE_COPY_WORD(&y, second);
        __asm__("smulbb %0, %2, %3\n\t"
                "smultt %1, %2, %3\n\t"
                "qadd %0, %0, %0\n\t"
                "qadd %1, %1, %1\n\t"
                : "=&r"(low), "=&r"(high)
                : "r"(x), "r"(y));
        x = ferrule_dense_pair(ferrule_dense_scaled(low, multiplier, rounding, right),
                               ferrule_dense_scaled(high, multiplier, rounding, right), lows,
                               highs);
        FERRULE_COPY_WORD(output, &x);
        first += 2;
        second += 2;
        output += 2;
    }
    return count / 2 * 2;
#else
    (void)constants;
    (void)first;
    (void)second;
    (void)output;
    (void)count;
    return 0;
#endif
}

#define FERRULE_KERNEL ferrule_mul_s16
#define FERRULE_PARAMS ferrule_product_params
#define FERRULE_LOCALS                                                                             \
    const int32_t first_offset = params->first_offset;                                             \
    const int32_t second_offset = params->second_offset;                                           \
    const struct ferrule_result result = params->result;                                           \
    const bool fits = is_dense(&result);                                                           \
    const struct ferrule_dense_s16 constants = {.multiplier = result.multiplier,                   \
                                                .shift = result.shift,                             \
                                                .low = result.low,                                 \
                                                .high = result.high};
#define FERRULE_RESULT(x, y)                                                                       \
    (int16_t)ferrule_result(&result, ((x) + first_offset) * ((y) + second_offset))
#define FERRULE_DENSE(first, second, output, count)                                                \
    (fits ? dense(&constants, first, second, output, count) : 0)
#include "ferrule/kernels/dense_s16.inc.h"
