/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/interpolate.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/reciprocal.h"
#include "ferrule/kernels/softmax.h"

static int32_t largest(const int16_t *input, int32_t depth)
{
    int32_t maximum = INT16_MIN;
#if FERRULE_HAS_MVE
    __asm__ volatile("wlstp.16 lr, %[depth], 2f\n\t"
                     "1:\n\t"
                     "vldrh.u16 q0, [%[input]], #16\n\t"
                     "vmaxv.s16 %[maximum], q0\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [input] "+l"(input), [maximum] "+r"(maximum)
                     : [depth] "r"(depth)
                     : "lr", "q0", "memory");
#else
#if FERRULE_HAS_DSP
    if (depth > 1) {
        uint32_t pair = ferrule_load_word((const int8_t *)input);

        input += depth % 2;
        for (int32_t left = depth / 2; left > 0; --left) {
            pair = ferrule_larger_halves(pair, ferrule_load_word((const int8_t *)input));
            input += 2;
        }
        pair = ferrule_larger_halves(pair, pair >> 16);
        return (int16_t)pair;
    }
#endif
    for (int32_t i = 0; i < depth; ++i) {
        maximum = input[i] > maximum ? input[i] : maximum;
    }
#endif
    return maximum;
}

/* How differences from the maximum, which are at most 0, become positions in the table. */
struct scale {
    const int16_t *table;
    int32_t multiplier;
    int32_t left;
    int32_t right;
    int32_t rounding; /* rounds halves of values below 0 away from it */
};

#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE

enum {
    MOST_LEFT = 13, /* so that twice the shifted unit is an int16 */
    MOST_RIGHT = 14 /* so that all positions shifted back fit 31 bits */
};

/* The exponential of a difference times 2^(left + 1); `start` rounds it and adds the last position.
 */
static inline int32_t exponential(const struct scale *scale, int32_t twice, int32_t start,
                                  bool is_shifted)
{
    const int32_t fraction_bits = (1 << FERRULE_INTERPOLATE_BITS) - 1;
    int32_t position;
    int32_t value;

    __asm__("smmlar %0, %1, %2, %3"
            : "=r"(position)
            : "r"(twice), "r"(scale->multiplier), "r"(start));
    if (is_shifted) {
        position >>= scale->right;
    }
    __asm__("usat %0, #16, %0" : "+r"(position) : : "cc");

    const uint32_t at = (uint32_t)position >> FERRULE_INTERPOLATE_BITS;
    const uint32_t entries = ferrule_load_word((const int8_t *)&scale->table[at]);

    /* the fraction in the high half, what it leaves of a step in the low one */
    __asm__("mla %0, %1, %2, %3"
            : "=r"(position)
            : "r"(position & fraction_bits), "r"(UINT16_MAX), "r"(1 << FERRULE_INTERPOLATE_BITS));
    __asm__("smlad %0, %1, %2, %3"
            : "=r"(value)
            : "r"(entries), "r"(position), "r"(1 << (FERRULE_INTERPOLATE_BITS - 1)));
    return value >> FERRULE_INTERPOLATE_BITS;
}

static inline __attribute__((always_inline)) int32_t pairs_of(const struct scale *given,
                                                              const int16_t *input, int16_t *output,
                                                              int32_t pairs, int32_t maximum,
                                                              bool is_shifted)
{
    const struct scale scale = *given; /* no store can change it */
    const int32_t unit = 2 << scale.left;
    const int32_t least = -maximum * unit;
    const int32_t start = scale.rounding + UINT16_MAX * (1 << scale.right);
    int32_t sum = 0;

    for (; pairs > 0; --pairs) {
        const uint32_t word = ferrule_load_word((const int8_t *)input);
        int32_t first;
        int32_t second;

        __asm__("smlabb %0, %2, %3, %4\n\t"
                "smlatb %1, %2, %3, %4"
                : "=&r"(first), "=r"(second)
                : "r"(word), "r"(unit), "r"(least));
        first = exponential(&scale, first, start, is_shifted);
        second = exponential(&scale, second, start, is_shifted);
        sum += first + second;

        const uint32_t both = ferrule_pair(first, second);

        FERRULE_COPY_WORD(output, &both);
        input += 2;
        output += 2;
    }
    return sum;
}

#endif

/* Writes the exponentials of a row in Q0.15 to its output and returns their sum. */
static int32_t exponentials(const struct scale *scale, const int16_t *input, int16_t *output,
                            int32_t depth)
{
    const int32_t maximum = largest(input, depth);
    int32_t sum = 0;

#if FERRULE_HAS_MVE
    __asm__ volatile("vmov.i32 q5, #0\n\t"
                     "vmov.i32 q6, #127\n\t"
                     "wlstp.32 lr, %[depth], 2f\n\t"
                     "1:\n\t"
                     "vldrh.s32 q0, [%[input]], #8\n\t"
                     "vadd.i32 q0, q0, %[least]\n\t"
                     "vshl.s32 q0, %[left]\n\t"
                     "vqrdmulh.s32 q0, q0, %[multiplier]\n\t"
                     "vadd.i32 q0, q0, %[rounding]\n\t"
                     "vshl.s32 q0, %[right]\n\t"
                     "vadd.i32 q0, q0, %[last]\n\t"
                     "vmax.s32 q0, q0, q5\n\t"
                     "vshr.u32 q1, q0, #7\n\t"
                     "vand q0, q0, q6\n\t"
                     "vldrh.s32 q2, [%[table], q1, uxtw #1]\n\t"
                     "vldrh.s32 q3, [%[next], q1, uxtw #1]\n\t"
                     "vsub.i32 q3, q3, q2\n\t"
                     "vmul.i32 q3, q3, q0\n\t"
                     "vrshr.s32 q3, q3, #7\n\t"
                     "vadd.i32 q2, q2, q3\n\t"
                     "vaddva.s32 %[sum], q2\n\t"
                     "vstrh.32 q2, [%[output]], #8\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [input] "+l"(input), [output] "+l"(output), [sum] "+Te"(sum)
                     : [depth] "r"(depth), [least] "r"(-maximum), [left] "r"(scale->left),
                       [multiplier] "r"(scale->multiplier), [rounding] "r"(scale->rounding),
                       [right] "r"(-scale->right), [last] "r"(UINT16_MAX),
                       [table] "r"(scale->table), [next] "r"(&scale->table[1])
                     : "lr", "q0", "q1", "q2", "q3", "q5", "q6", "memory");
#else
#if FERRULE_HAS_DSP
    const int32_t pairs = depth / 2;

    if (scale->left <= MOST_LEFT && scale->right <= MOST_RIGHT) {
        sum = scale->right == 0 ? pairs_of(scale, input, output, pairs, maximum, false)
                                : pairs_of(scale, input, output, pairs, maximum, true);
        input += 2 * pairs;
        output += 2 * pairs;
        depth %= 2;
    }
#endif
    for (; depth > 0; --depth) {
        const int32_t shifted = ferrule_shift_left_wrap(*input++ - maximum, scale->left);
        const int32_t high = ferrule_high_multiply(shifted, scale->multiplier) + scale->rounding;
        const int32_t position = (high >> scale->right) + INT16_MAX;
        const int32_t value =
            ferrule_interpolate(scale->table, position < INT16_MIN ? INT16_MIN : position);

        *output++ = (int16_t)value;
        sum += value;
    }
#endif
    return sum;
}

/* Replaces exponentials by their products with `inverse`, divided by 2^right, halves up; neither
 * product is below 0. */
static void divide(int16_t *output, int32_t depth, int32_t inverse, int32_t right)
{
#if FERRULE_HAS_MVE
    __asm__ volatile(
        "vdup.32 q1, %[most]\n\t"
        "wlstp.32 lr, %[depth], 2f\n\t"
        "1:\n\t"
        "vldrh.s32 q0, [%[output]]\n\t"
        "vmul.i32 q0, q0, %[inverse]\n\t"
        "vrshl.s32 q0, %[right]\n\t"
        "vmin.s32 q0, q0, q1\n\t"
        "vstrh.32 q0, [%[output]], #8\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [output] "+l"(output)
        : [depth] "r"(depth), [inverse] "r"(inverse), [right] "r"(-right), [most] "r"(INT16_MAX)
        : "lr", "q0", "q1", "memory");
#else
    const int32_t half = INT32_C(1) << (right - 1);

#if FERRULE_HAS_DSP
    for (; depth > 1; depth -= 2) {
        const uint32_t word = ferrule_load_word((const int8_t *)output);
        int32_t low;
        int32_t high;

        __asm__("smlabb %0, %2, %3, %4\n\t"
                "smlatb %1, %2, %3, %4"
                : "=&r"(low), "=r"(high)
                : "r"(word), "r"(inverse), "r"(half));

        const uint32_t both =
            ferrule_pair(ferrule_saturate_s16(low >> right), ferrule_saturate_s16(high >> right));

        FERRULE_COPY_WORD(output, &both);
        output += 2;
    }
#endif
    for (; depth > 0; --depth) {
        const int32_t value = (*output * inverse + half) >> right;

        *output++ = (int16_t)(value > INT16_MAX ? INT16_MAX : value);
    }
#endif
}

void ferrule_softmax_s16(const struct ferrule_softmax_s16_params *params, const int16_t *input,
                         int16_t *output)
{
    const int32_t right = params->shift < 0 ? -params->shift : 0;
    const struct scale scale = {
        .table = params->exp_table,
        .multiplier = params->multiplier,
        .left = params->shift > 0 ? params->shift : 0,
        .right = right,
        .rounding = right > 0 ? (int32_t)((UINT32_C(1) << right) >> 1) - 1 : 0,
    };

    for (int32_t r = 0; r < params->rows; ++r) {
        const int32_t sum = exponentials(&scale, input, output, params->depth);
        const int32_t headroom = ferrule_leading_zeros((uint32_t)sum) - 1;
        /* the table maps 1 to 2 onto -32768 to 32767 */
        int32_t position = (int32_t)((((uint32_t)sum << headroom) + (1u << 13)) >> 14);

        position -= (1 << 15) + (1 << 16);
        position = position > INT16_MAX ? INT16_MAX : position;
        divide(output, params->depth, ferrule_interpolate(params->inverse_table, position),
               30 - headroom);
        input += params->depth;
        output += params->depth;
    }
}
