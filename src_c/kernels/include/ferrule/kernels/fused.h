/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Fused multiply-add of float32 with a small integer: one rounding, on every core; internal
 * to the kernels. All functions are pure.
 */
#ifndef FERRULE_KERNELS_FUSED_H_INCLUDED
#define FERRULE_KERNELS_FUSED_H_INCLUDED

#include <stdint.h>

/** A number of 0, or from 2^-60 to 2^30: mantissa * 2^exponent. */
struct ferrule_number {
    float value;
    int32_t mantissa; /**< 24 bits and the sign */
    int32_t exponent;
};

union ferrule_float_bits {
    float value;
    uint32_t word;
};

/** @brief Return the parts of a number, which must not be denormal, infinite or NaN. */
static inline struct ferrule_number ferrule_number(float value)
{
    union ferrule_float_bits bits = {.value = value};
    int32_t exponent = (int32_t)(bits.word >> 23) & 0xFF;
    int32_t mantissa = (int32_t)(bits.word & UINT32_C(0x7FFFFF)) | (INT32_C(1) << 23);
    struct ferrule_number number = {value, value < 0.0f ? -mantissa : mantissa, exponent - 150};

    if (exponent == 0) {
        number.mantissa = 0;
    }
    return number;
}

/** @brief Shift to the right by 0 or more; the last bit is set if a bit was lost. */
static inline int64_t ferrule_shift_to_odd(int64_t value, int32_t shift)
{
    int32_t right = shift < 62 ? shift : 62;
    int64_t whole = value >> right;

    return whole * ((int64_t)1 << right) == value ? whole : whole | 1;
}

/** @brief Return value * factor + addend, rounded once; the value has at most 9 bits and a sign. */
static inline float ferrule_fused(int32_t value, const struct ferrule_number *factor, float addend)
{
#if defined(__ARM_FEATURE_FMA) && defined(__arm__)
    /* Clang calls a function of the C library instead. */
    __asm__("vfma.f32 %0, %1, %2" : "+t"(addend) : "t"((float)value), "t"(factor->value));
    return addend;
#elif defined(__ARM_FEATURE_FMA) || defined(__FMA__)
    return __builtin_fmaf((float)value, factor->value, addend);
#else
    struct ferrule_number other = ferrule_number(addend);
    int64_t product = (int64_t)value * factor->mantissa; /* below 2^33 */
    int64_t sum = other.mantissa;
    int32_t shift = factor->exponent - other.exponent;
    union ferrule_float_bits unit;

    if (product == 0) {
        return addend;
    }
    if (sum == 0) {
        other.exponent = factor->exponent;
        sum = product;
    } else if (shift >= 0) {
        /* a bit of the addend that is lost lies far below the last bit of the result */
        int32_t left = shift < 29 ? shift : 29;

        sum = product * ((int64_t)1 << left) + ferrule_shift_to_odd(sum, shift - left);
        other.exponent = factor->exponent - left;
    } else {
        int32_t left = -shift < 38 ? -shift : 38;

        sum = sum * ((int64_t)1 << left) + ferrule_shift_to_odd(product, -shift - left);
        other.exponent -= left;
    }
    unit.word = (uint32_t)(other.exponent + 127) << 23;
    return (float)sum * unit.value; /* the conversion rounds */
#endif
}

#endif
