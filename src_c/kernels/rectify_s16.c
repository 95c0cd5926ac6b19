/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dense_s16.h"
#include "ferrule/kernels/slope.h"

#if FERRULE_HAS_MVE || FERRULE_HAS_DSP

enum { MOST_LEFT = 13 /* so that twice the shifted unit is an int16 */ };

/* A slope for values of one sign; the assembler relies on the members' order. */
struct factor {
    int32_t multiplier;
    int32_t left;
    int32_t rounding; /* halves away from zero, before the shift to the right */
    int32_t right;
    int32_t sign;
};

static struct factor factor_of(const struct ferrule_slope *slope, bool is_below)
{
    const int32_t right = slope->shift < 0 ? -slope->shift : 0;
    const int32_t half = (int32_t)((UINT32_C(1) << right) >> 1);
    const struct factor factor = {
        .multiplier = slope->multiplier,
        .left = slope->shift > 0 ? slope->shift : 0,
        .right = right,
        .rounding = is_below && right > 0 ? half - 1 : half,
        .sign = slope->sign,
    };

    return factor;
}

#endif

#if FERRULE_HAS_MVE

/* Set the limits in q2 and q3, zeros in q4, and the factor of positive values in t0 to t3. */
#define START                                                                                      \
    "vmov.i32 q4, #0\n\t"                                                                          \
    "ldrd %[t0], %[t1], [%[limits]]\n\t"                                                           \
    "vdup.32 q2, %[t0]\n\t"                                                                        \
    "vdup.32 q3, %[t1]\n\t"                                                                        \
    "ldrd %[t0], %[t1], [%[above]]\n\t"                                                            \
    "ldrd %[t2], %[t3], [%[above], #8]\n\t"                                                        \
    "rsb %[t3], %[t3], #0\n\t"
/* Scale the positive values in a vector. */
#define SCALE(values)                                                                              \
    "vshl.s32 " values ", %[t1]\n\t"                                                               \
    "vqrdmulh.s32 " values ", " values ", %[t0]\n\t"                                               \
    "vadd.i32 " values ", " values ", %[t2]\n\t"                                                   \
    "vshl.s32 " values ", %[t3]\n\t"
#define STORE                                                                                      \
    "vmax.s32 q0, q0, q2\n\t"                                                                      \
    "vmin.s32 q0, q0, q3\n\t"                                                                      \
    "vstrh.32 q0, [%[output]], #8\n\t"                                                             \
    "letp lr, 1b\n\t"                                                                              \
    "2:\n\t"

static int32_t rectify(const struct ferrule_rectify_s16_params *params, const struct factor *above,
                       const struct factor *below, const int16_t *input, int16_t *output)
{
    const int32_t limits[] = {params->low, params->high};
    const int32_t count = params->elements;
    int32_t t0;
    int32_t t1;
    int32_t t2;
    int32_t t3;

    if (params->low >= 0) { /* as the results of all values below 0 */
        __asm__ volatile(START "wlstp.32 lr, %[count], 2f\n\t"
                               "1:\n\t"
                               "vldrh.s32 q0, [%[input]], #8\n\t"
                               "vmax.s32 q0, q0, q4\n\t" SCALE("q0") STORE
                         : [input] "+l"(input), [output] "+l"(output), [t0] "=&r"(t0),
                           [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3)
                         : [count] "r"(count), [limits] "r"(limits), [above] "r"(above)
                         : "lr", "q0", "q2", "q3", "q4", "memory");
    } else {
        int32_t up;
        int32_t down;

        __asm__ volatile(
            START "ldr %[up], [%[below]]\n\t"
                  "vdup.32 q5, %[up]\n\t"
                  "ldr %[up], [%[below], #8]\n\t"
                  "vdup.32 q6, %[up]\n\t"
                  "ldr %[up], [%[below], #16]\n\t"
                  "vdup.32 q7, %[up]\n\t"
                  "ldr %[up], [%[below], #4]\n\t"
                  "ldr %[down], [%[below], #12]\n\t"
                  "rsb %[down], %[down], #0\n\t"
                  "wlstp.32 lr, %[count], 2f\n\t"
                  "1:\n\t"
                  "vldrh.s32 q0, [%[input]], #8\n\t"
                  "vmax.s32 q1, q0, q4\n\t"
                  "vmin.s32 q0, q0, q4\n\t" SCALE("q1") "vshl.s32 q0, %[up]\n\t"
                                                        "vqrdmulh.s32 q0, q0, q5\n\t"
                                                        "vadd.i32 q0, q0, q6\n\t"
                                                        "vshl.s32 q0, %[down]\n\t"
                                                        "vmul.i32 q0, q0, q7\n\t"
                                                        "vadd.i32 q0, q0, q1\n\t" STORE
            : [input] "+l"(input), [output] "+l"(output), [t0] "=&r"(t0), [t1] "=&r"(t1),
              [t2] "=&r"(t2), [t3] "=&r"(t3), [up] "=&r"(up), [down] "=&r"(down)
            : [count] "r"(count), [limits] "r"(limits), [above] "r"(above), [below] "r"(below)
            : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");
    }
    return count;
}

#elif FERRULE_HAS_DSP

/* The results for the low and the high half of a word of values of one sign. */
static inline int32_t low_result(const struct factor *factor, uint32_t word)
{
    int32_t value;

    __asm__("smulbb %0, %1, %2\n\t"
            "smmlar %0, %0, %3, %4"
            : "=&r"(value)
            : "r"(word), "r"(2 << factor->left), "r"(factor->multiplier), "r"(factor->rounding));
    return value >> factor->right;
}

static inline int32_t high_result(const struct factor *factor, uint32_t word)
{
    int32_t value;

    __asm__("smultb %0, %1, %2\n\t"
            "smmlar %0, %0, %3, %4"
            : "=&r"(value)
            : "r"(word), "r"(2 << factor->left), "r"(factor->multiplier), "r"(factor->rounding));
    return value >> factor->right;
}

static int32_t rectify(const struct ferrule_rectify_s16_params *params,
                       const struct factor *given_above, const struct factor *given_below,
                       const int16_t *input, int16_t *output)
{
    const struct factor above = *given_above; /* no store can change them */
    const struct factor below = *given_below;
    const int32_t pairs = params->elements / 2;
    const uint32_t lows = ferrule_pair(params->low, params->low);
    const uint32_t highs = ferrule_pair(params->high, params->high);
    const bool is_clamped = params->low >= 0;

    for (int32_t left = pairs; left > 0; --left) {
        const uint32_t word = ferrule_load_word((const int8_t *)input);
        uint32_t values;

        __asm__("usat16 %0, #15, %1" : "=r"(values) : "r"(word) : "cc");

        int32_t low = low_result(&above, values);
        int32_t high = high_result(&above, values);

        if (!is_clamped) {
            __asm__("ssub16 %0, %1, %0" : "+r"(values) : "r"(word) : "cc");
            low += low_result(&below, values) * below.sign;
            high += high_result(&below, values) * below.sign;
        }
        values = ferrule_dense_pair(low, high, lows, highs);
        FERRULE_COPY_WORD(output, &values);
        input += 2;
        output += 2;
    }
    return 2 * pairs;
}

#endif

static int32_t result(const struct ferrule_rectify_s16_params *params, int32_t value)
{
    const struct ferrule_slope *slope = value < 0 ? &params->negative : &params->positive;

    return ferrule_clamp(ferrule_apply_slope(slope, value), params->low, params->high);
}

void ferrule_rectify_s16(const struct ferrule_rectify_s16_params *params, const int16_t *input,
                         int16_t *output)
{
    int32_t i = 0;

#if FERRULE_HAS_MVE || FERRULE_HAS_DSP
    if (params->positive.shift <= MOST_LEFT && params->negative.shift <= MOST_LEFT) {
        const struct factor above = factor_of(&params->positive, false);
        const struct factor below = factor_of(&params->negative, true);

        i = rectify(params, &above, &below, input, output);
    }
#endif
    for (; i < params->elements; ++i) {
        output[i] = (int16_t)result(params, input[i]);
    }
}
