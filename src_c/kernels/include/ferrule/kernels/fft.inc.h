/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The complex Fourier transform of the signal library's kernels, by mixed radices. A kernel's
 * source file defines these macros, then includes this file:
 *
 * FERRULE_ELEMENT   element type: int16_t, int32_t or float
 * FERRULE_WIDE      type of a product of integers
 * FERRULE_FRACTION  bits of an integer's fraction; undefined for float
 */
#include <stdbool.h>

#include "ferrule/kernels/signal.h"

#if !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

#define FERRULE_MOST_STAGES 16

struct point {
    FERRULE_ELEMENT real;
    FERRULE_ELEMENT imaginary;
};

#if defined(FERRULE_FRACTION)
static inline FERRULE_ELEMENT rounded(FERRULE_WIDE product)
{
    return (FERRULE_ELEMENT)((product + ((FERRULE_WIDE)1 << (FERRULE_FRACTION - 1))) >>
                             FERRULE_FRACTION);
}

static inline FERRULE_ELEMENT scaled(FERRULE_ELEMENT value, FERRULE_ELEMENT factor)
{
    return rounded((FERRULE_WIDE)value * factor);
}

static inline FERRULE_ELEMENT divided(FERRULE_ELEMENT value, int32_t by)
{
    const int32_t highest = (int32_t)((UINT32_C(1) << FERRULE_FRACTION) - 1u);

    return scaled(value, (FERRULE_ELEMENT)(highest / by));
}

static inline FERRULE_ELEMENT sum_of(FERRULE_ELEMENT one, FERRULE_ELEMENT other)
{
    return (FERRULE_ELEMENT)((uint32_t)one + (uint32_t)other);
}

static inline FERRULE_ELEMENT difference_of(FERRULE_ELEMENT one, FERRULE_ELEMENT other)
{
    return (FERRULE_ELEMENT)((uint32_t)one - (uint32_t)other);
}

static inline FERRULE_ELEMENT half_of(FERRULE_ELEMENT value)
{
    return (FERRULE_ELEMENT)(value >> 1);
}
#else
static inline FERRULE_ELEMENT rounded(FERRULE_ELEMENT product)
{
    return product;
}

static inline FERRULE_ELEMENT scaled(FERRULE_ELEMENT value, FERRULE_ELEMENT factor)
{
    return value * factor;
}

static inline FERRULE_ELEMENT divided(FERRULE_ELEMENT value, int32_t by)
{
    (void)by;
    return value;
}

static inline FERRULE_ELEMENT sum_of(FERRULE_ELEMENT one, FERRULE_ELEMENT other)
{
    return one + other;
}

static inline FERRULE_ELEMENT difference_of(FERRULE_ELEMENT one, FERRULE_ELEMENT other)
{
    return one - other;
}

static inline FERRULE_ELEMENT half_of(FERRULE_ELEMENT value)
{
    return 0.5f * value;
}
#endif

static inline struct point plus(struct point one, struct point other)
{
    const struct point sum = {sum_of(one.real, other.real), sum_of(one.imaginary, other.imaginary)};

    return sum;
}

static inline struct point minus(struct point one, struct point other)
{
    const struct point difference = {difference_of(one.real, other.real),
                                     difference_of(one.imaginary, other.imaginary)};

    return difference;
}

static inline struct point divided_point(struct point value, int32_t by)
{
    const struct point quotient = {divided(value.real, by), divided(value.imaginary, by)};

    return quotient;
}

static inline struct point times(struct point one, struct point other)
{
    const struct point product = {rounded((FERRULE_WIDE)one.real * other.real -
                                          (FERRULE_WIDE)one.imaginary * other.imaginary),
                                  rounded((FERRULE_WIDE)one.real * other.imaginary +
                                          (FERRULE_WIDE)one.imaginary * other.real)};

    return product;
}

/** The radix of the first stage of a transform; fours come first, then 2, 3 and 5. */
static inline int32_t radix_of(int32_t points)
{
    return points % 4 == 0 ? 4 : points % 2 == 0 ? 2 : points % 3 == 0 ? 3 : 5;
}

static inline void butterfly_2(struct point *at, int32_t inner, struct point one)
{
    const struct point zero = at[0];

    at[0] = plus(zero, one);
    at[inner] = minus(zero, one);
}

static inline void butterfly_3(struct point *at, int32_t inner, const struct point *arms,
                               struct point special)
{
    const struct point both = plus(arms[1], arms[2]);
    const struct point apart = minus(arms[1], arms[2]);
    const struct point half = {half_of(both.real), half_of(both.imaginary)};
    const struct point rest = minus(arms[0], half);
    const FERRULE_ELEMENT real = scaled(apart.real, special.imaginary);
    const FERRULE_ELEMENT imaginary = scaled(apart.imaginary, special.imaginary);
    const struct point low = {difference_of(rest.real, imaginary), sum_of(rest.imaginary, real)};
    const struct point high = {sum_of(rest.real, imaginary), difference_of(rest.imaginary, real)};

    at[0] = plus(arms[0], both);
    at[inner] = low;
    at[2 * inner] = high;
}

static inline void butterfly_4(struct point *at, int32_t inner, const struct point *arms,
                               bool is_inverse)
{
    const struct point rest = minus(arms[0], arms[2]);
    const struct point total = plus(arms[0], arms[2]);
    const struct point both = plus(arms[1], arms[3]);
    const struct point apart = minus(arms[1], arms[3]);
    const struct point low = {sum_of(rest.real, apart.imaginary),
                              difference_of(rest.imaginary, apart.real)};
    const struct point high = {difference_of(rest.real, apart.imaginary),
                               sum_of(rest.imaginary, apart.real)};

    at[0] = plus(total, both);
    at[inner] = is_inverse ? high : low;
    at[2 * inner] = minus(total, both);
    at[3 * inner] = is_inverse ? low : high;
}

/** The part of a transform by 5 that depends on the cosines. */
static inline struct point cosines(struct point start, struct point outer, struct point inner,
                                   FERRULE_ELEMENT first, FERRULE_ELEMENT second)
{
    const struct point sum = {
        sum_of(sum_of(start.real, scaled(outer.real, first)), scaled(inner.real, second)),
        sum_of(sum_of(start.imaginary, scaled(outer.imaginary, first)),
               scaled(inner.imaginary, second))};

    return sum;
}

static inline void butterfly_5(struct point *at, int32_t inner, const struct point *arms,
                               struct point a, struct point b)
{
    const struct point outer_sum = plus(arms[1], arms[4]);
    const struct point outer_gap = minus(arms[1], arms[4]);
    const struct point inner_sum = plus(arms[2], arms[3]);
    const struct point inner_gap = minus(arms[2], arms[3]);
    const struct point wide = cosines(arms[0], outer_sum, inner_sum, a.real, b.real);
    const struct point narrow = cosines(arms[0], outer_sum, inner_sum, b.real, a.real);
    const struct point far = {
        sum_of(scaled(outer_gap.imaginary, a.imaginary), scaled(inner_gap.imaginary, b.imaginary)),
        sum_of(scaled(outer_gap.real, a.imaginary), scaled(inner_gap.real, b.imaginary))};
    const struct point near = {
        difference_of(scaled(outer_gap.imaginary, b.imaginary),
                      scaled(inner_gap.imaginary, a.imaginary)),
        difference_of(scaled(outer_gap.real, b.imaginary), scaled(inner_gap.real, a.imaginary))};
    const struct point results[5] = {
        plus(arms[0], plus(outer_sum, inner_sum)),
        {difference_of(wide.real, far.real), sum_of(wide.imaginary, far.imaginary)},
        {difference_of(narrow.real, near.real), sum_of(narrow.imaginary, near.imaginary)},
        {sum_of(narrow.real, near.real), difference_of(narrow.imaginary, near.imaginary)},
        {sum_of(wide.real, far.real), difference_of(wide.imaginary, far.imaginary)}};

    for (int32_t arm = 0; arm < 5; ++arm) {
        at[arm * inner] = results[arm];
    }
}

/** Run the stage that joins `radix` transforms of `inner` points each. */
static void run_stage(struct point *data, const struct point *factors, int32_t points,
                      int32_t radix, int32_t inner, bool is_inverse)
{
    const int32_t blocks = points / (radix * inner);

    for (int32_t block = 0; block < blocks; ++block) {
        for (int32_t i = 0; i < inner; ++i) {
            struct point *at = &data[block * radix * inner + i];
            struct point arms[5];

            arms[0] = divided_point(at[0], radix);
            for (int32_t arm = 1; arm < radix; ++arm) {
                arms[arm] = times(divided_point(at[arm * inner], radix), factors[arm * i * blocks]);
            }
            switch (radix) {
            case 2:
                at[0] = arms[0];
                butterfly_2(at, inner, arms[1]);
                break;
            case 3:
                butterfly_3(at, inner, arms, factors[blocks * inner]);
                break;
            case 4:
                butterfly_4(at, inner, arms, is_inverse);
                break;
            default:
                butterfly_5(at, inner, arms, factors[blocks * inner], factors[2 * blocks * inner]);
                break;
            }
        }
    }
}

/** The stages of a transform, and the order in which it reads its points. */
struct order {
    int32_t stages;
    int32_t at; /* the present point */
    uint8_t radices[FERRULE_MOST_STAGES];
    uint8_t digits[FERRULE_MOST_STAGES];
    int32_t strides[FERRULE_MOST_STAGES];
};

static void first_point(struct order *order, int32_t points)
{
    int32_t stride = 1;

    order->at = 0;
    order->stages = 0;
    while (stride < points) {
        const int32_t radix = radix_of(points / stride);

        order->radices[order->stages] = (uint8_t)radix;
        order->digits[order->stages] = 0u;
        order->strides[order->stages] = stride;
        order->stages++;
        stride *= radix;
    }
}

static void next_point(struct order *order)
{
    for (int32_t stage = order->stages - 1; stage >= 0; --stage) {
        order->at += order->strides[stage];
        order->digits[stage]++;
        if (order->digits[stage] < order->radices[stage]) {
            return;
        }
        order->at -= order->strides[stage] * order->radices[stage];
        order->digits[stage] = 0u;
    }
}

/** Transform points that have been stored in the order of `order`. */
static void transform(const struct order *order, struct point *data, const struct point *factors,
                      int32_t points, bool is_inverse)
{
    int32_t inner = 1;

    for (int32_t stage = order->stages - 1; stage >= 0; --stage) {
        run_stage(data, factors, points, order->radices[stage], inner, is_inverse);
        inner *= order->radices[stage];
    }
}
