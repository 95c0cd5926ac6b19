/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "ferrule/kernels/float_pixels.h"
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/walk.h"

enum { LANES = 4, EIGHT = 8, OUTER = 3 };

/* A sum by Kahan, whose error does not grow with the number of elements. */
struct total {
    float sum;
    float lost;
};

static inline void add(struct total *total, float element)
{
    const float term = element - total->lost;
    const float next = total->sum + term;

    total->lost = (next - total->sum) - term;
    total->sum = next;
}

/* The same for sums that may become infinite, and then have no error. */
static float sum_any(const struct ferrule_reduce_loops *over, const float *input)
{
    struct ferrule_walk walk = {.offset = 0};
    struct total total = {0.0f, 0.0f};

    do {
        add(&total, input[walk.offset]);
        total.lost = total.sum - total.sum == 0.0f ? total.lost : 0.0f;
    } while (ferrule_walk_next(&walk, over, OUTER + 1));
    return total.sum;
}

static void sum_one(const struct ferrule_reduce_loops *over, const float *input, float *sums)
{
    const int32_t step = over->strides[OUTER];
    struct ferrule_walk walk = {.offset = 0};
    struct total total = {0.0f, 0.0f};

    do {
        const float *element = input + walk.offset;

        for (int32_t i = over->extents[OUTER]; i > 0; --i) {
            add(&total, *element);
            element += step;
        }
    } while (ferrule_walk_next(&walk, over, OUTER));
    sums[0] = total.sum;
}

/* Sums of elements that are `lane` apart. */
static void sum_four(const struct ferrule_reduce_loops *over, const float *input, int32_t lane,
                     float *sums)
{
    const int32_t step = over->strides[OUTER];
    struct ferrule_walk walk = {.offset = 0};
    struct total a = {0.0f, 0.0f};
    struct total b = a;
    struct total c = a;
    struct total d = a;

    do {
        const float *first = input + walk.offset;
        const float *second = first + lane;
        const float *third = second + lane;
        const float *fourth = third + lane;

        for (int32_t i = over->extents[OUTER]; i > 0; --i) {
            add(&a, *first);
            add(&b, *second);
            add(&c, *third);
            add(&d, *fourth);
            first += step;
            second += step;
            third += step;
            fourth += step;
        }
    } while (ferrule_walk_next(&walk, over, OUTER));
    sums[0] = a.sum;
    sums[1] = b.sum;
    sums[2] = c.sum;
    sums[3] = d.sum;
}

#if FERRULE_HAS_VFP

/* Eight totals of adjacent elements. */
struct totals {
    float sums[EIGHT];
    float lost[EIGHT];
};

/* An element of each total: sums in s0 to s7 go to s24 to s31, or back; errors are in s8 to s15. */
#define EACH(step, from, to)                                                                       \
    step(from##0, 8, 16, to##0) step(from##1, 9, 17, to##1) step(from##2, 10, 18, to##2)           \
        step(from##3, 11, 19, to##3) step(from##4, 12, 20, to##4) step(from##5, 13, 21, to##5)     \
            step(from##6, 14, 22, to##6) step(from##7, 15, 23, to##7)
#define FIRST0                    "s0"
#define FIRST1                    "s1"
#define FIRST2                    "s2"
#define FIRST3                    "s3"
#define FIRST4                    "s4"
#define FIRST5                    "s5"
#define FIRST6                    "s6"
#define FIRST7                    "s7"
#define SECOND0                   "s24"
#define SECOND1                   "s25"
#define SECOND2                   "s26"
#define SECOND3                   "s27"
#define SECOND4                   "s28"
#define SECOND5                   "s29"
#define SECOND6                   "s30"
#define SECOND7                   "s31"
#define TERM(sum, lost, x, next)  "vsub.f32 s" #x ", s" #x ", s" #lost "\n\t"
#define NEXT(sum, lost, x, next)  "vadd.f32 " next ", " sum ", s" #x "\n\t"
#define ADDED(sum, lost, x, next) "vsub.f32 s" #lost ", " next ", " sum "\n\t"
#define LOST(sum, lost, x, next)  "vsub.f32 s" #lost ", s" #lost ", s" #x "\n\t"
#define ADD_EIGHT(from, to)                                                                        \
    "vldmia %[input], {s16-s23}\n\t"                                                               \
    "add %[input], %[input], %[step]\n\t" EACH(TERM, from, to) EACH(NEXT, from, to)                \
        EACH(ADDED, from, to) EACH(LOST, from, to)

/* Add an even number of elements to each total. */
static void add_pairs(struct totals *totals, const float *input, int32_t step, int32_t count)
{
    __asm__ volatile(
        "vldmia %[totals], {s0-s15}\n\t"
        "1:\n\t" ADD_EIGHT(FIRST, SECOND) ADD_EIGHT(SECOND, FIRST) "subs %[count], %[count], #2\n\t"
                                                                   "bne 1b\n\t"
                                                                   "vstmia %[totals], {s0-s15}"
        : [input] "+r"(input), [count] "+r"(count)
        : [totals] "r"(totals), [step] "r"(step * (int32_t)sizeof(float))
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
          "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26",
          "s27", "s28", "s29", "s30", "s31", "cc", "memory");
}

#if FERRULE_HAS_MVE_FLOAT

#define VADD_FOUR(sum, lost, x, next)                                                              \
    "vsub.f32 " x ", " x ", " lost "\n\t"                                                          \
    "vadd.f32 " next ", " sum ", " x "\n\t"                                                        \
    "vsub.f32 " lost ", " next ", " sum "\n\t"                                                     \
    "vsub.f32 " lost ", " lost ", " x "\n\t"
#define VADD_EIGHT(sum, second, next, following)                                                   \
    "vldrw.u32 q4, [%[input]]\n\t"                                                                 \
    "vldrw.u32 q5, [%[input], #16]\n\t"                                                            \
    "add %[input], %[input], %[step]\n\t" VADD_FOUR(sum, "q2", "q4", next)                         \
        VADD_FOUR(second, "q3", "q5", following)

/* The same with vectors; returns false, and changes nothing, if a number is too small for them:
 * they take subnormal numbers for 0, and tell so in two flags. */
static bool add_vectors(struct totals *totals, const float *input, int32_t step, int32_t count)
{
    uint32_t state;
    uint32_t flags;

    __asm__ volatile(
        ".arch_extension mve.fp\n\t" /* compilers must not use it */
        "vmrs %[state], fpscr\n\t"
        "bic %[flags], %[state], " FERRULE_TOO_SMALL_TEXT "\n\t"
        "vmsr fpscr, %[flags]\n\t"
        "vldrw.u32 q0, [%[totals]]\n\t"
        "vldrw.u32 q1, [%[totals], #16]\n\t"
        "vldrw.u32 q2, [%[totals], #32]\n\t"
        "vldrw.u32 q3, [%[totals], #48]\n\t"
        "1:\n\t" VADD_EIGHT("q0", "q1", "q6", "q7")
            VADD_EIGHT("q6", "q7", "q0", "q1") "subs %[count], %[count], #2\n\t"
                                               "bne 1b\n\t"
                                               "vmrs %[flags], fpscr\n\t"
                                               "orr %[state], %[state], %[flags]\n\t"
                                               "vmsr fpscr, %[state]\n\t"
                                               "tst %[flags], " FERRULE_TOO_SMALL_TEXT "\n\t"
                                               "bne 2f\n\t"
                                               "vstrw.32 q0, [%[totals]]\n\t"
                                               "vstrw.32 q1, [%[totals], #16]\n\t"
                                               "vstrw.32 q2, [%[totals], #32]\n\t"
                                               "vstrw.32 q3, [%[totals], #48]\n\t"
                                               "2:"
        : [input] "+r"(input), [count] "+r"(count), [state] "=&r"(state), [flags] "=&r"(flags)
        : [totals] "r"(totals), [step] "r"(step * (int32_t)sizeof(float))
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
          "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26",
          "s27", "s28", "s29", "s30", "s31", "cc", "memory");
    return (flags & FERRULE_TOO_SMALL) == 0;
}

#else

static bool add_vectors(struct totals *totals, const float *input, int32_t step, int32_t count)
{
    (void)totals;
    (void)input;
    (void)step;
    (void)count;
    return false;
}

#endif

static void sum_eight(const struct ferrule_reduce_loops *over, const float *input, float *sums)
{
    const int32_t step = over->strides[OUTER];
    const int32_t even = over->extents[OUTER] & ~1;
    struct ferrule_walk walk = {.offset = 0};
    struct totals totals = {{0.0f}, {0.0f}};

    do {
        const float *first = input + walk.offset;

        if (even > 0 && !add_vectors(&totals, first, step, even)) {
            add_pairs(&totals, first, step, even);
        }
        for (int32_t i = 0; even < over->extents[OUTER] && i < EIGHT; ++i) {
            struct total total = {totals.sums[i], totals.lost[i]};

            add(&total, first[even * step + i]);
            totals.sums[i] = total.sum;
            totals.lost[i] = total.lost;
        }
    } while (ferrule_walk_next(&walk, over, OUTER));
    for (int32_t i = 0; i < EIGHT; ++i) {
        sums[i] = totals.sums[i];
    }
}

#endif

/* Compute as many sums as there are at once, and return their number. */
static int32_t sum_some(const struct ferrule_reduce_f32_params *params, const float *input,
                        int32_t left, float *sums)
{
    const int32_t lane = params->kept.strides[OUTER];

#if FERRULE_HAS_VFP
    if (left >= EIGHT && lane == 1) {
        sum_eight(&params->reduced, input, sums);
        return EIGHT;
    }
#endif
    if (left >= LANES) {
        sum_four(&params->reduced, input, lane, sums);
        return LANES;
    }
    sum_one(&params->reduced, input, sums);
    return 1;
}

void ferrule_reduce_f32(const struct ferrule_reduce_f32_params *params, const float *input,
                        float *output)
{
    const int32_t lane = params->kept.strides[OUTER];
    struct ferrule_walk walk = {.offset = 0};

    do {
        const float *element = input + walk.offset;
        int32_t left = params->kept.extents[OUTER];

        while (left > 0) {
            float sums[EIGHT];
            const int32_t count = sum_some(params, element, left, sums);

            for (int32_t i = 0; i < count; ++i) {
                if (sums[i] - sums[i] != 0.0f) {
                    sums[i] = sum_any(&params->reduced, element + i * lane);
                }
            }
            for (int32_t i = 0; i < count; ++i) {
                *output++ = sums[i] / params->divisor;
            }
            element += count * lane;
            left -= count;
        }
    } while (ferrule_walk_next(&walk, &params->kept, OUTER));
}
