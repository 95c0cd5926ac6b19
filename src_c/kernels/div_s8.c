/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/reciprocal.h"

static inline int32_t leading_sign_bits(int32_t value)
{
    uint32_t magnitude = value < 0 ? 2u * (uint32_t)-value - 1u : 2u * (uint32_t)value;
    int32_t bits = value == 0 ? 31 : 0;

    while (value != 0 && (magnitude & UINT32_C(0x80000000)) == 0u) {
        magnitude <<= 1;
        ++bits;
    }
    return bits;
}

static int8_t quotient(const struct ferrule_result *result, int32_t value, int32_t divisor)
{
    const int32_t beyond = 1 << 16; /* the limits of int8 */
    int32_t scaled = value > 0 ? beyond : value < 0 ? -beyond : 0;

    if (divisor != 0) {
        int32_t shift;
        int32_t inverse =
            ferrule_reciprocal((uint32_t)(divisor < 0 ? -divisor : divisor), 31, &shift);

        value = divisor < 0 ? -value : value;
        int32_t headroom = leading_sign_bits(value);
        int32_t high = ferrule_high_multiply(ferrule_shift_left_wrap(value, headroom), inverse);

        high = ferrule_high_multiply(high, result->multiplier);
        shift += headroom - result->shift;
        if (shift <= 31) {
            scaled = ferrule_divide_by_power(high, shift);
        } else { /* TensorFlow Lite Micro's result where shifts are modulo 32 */
            scaled = ferrule_add_wrap(high >> (shift & 31), high >= 0 ? 1 : 0);
        }
    }
    return (int8_t)ferrule_clamp(ferrule_add_wrap(scaled, result->zero_point), result->low,
                                 result->high);
}

#define FERRULE_KERNEL ferrule_div_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_product_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const int32_t first_offset = params->first_offset;                                             \
    const int32_t second_offset = params->second_offset;                                           \
    const struct ferrule_result result = params->result;
#define FERRULE_RESULT(x, y) quotient(&result, (x) + first_offset, (y) + second_offset)
#include "ferrule/kernels/elementwise.inc.h"
