/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The upper part of a product of 64 bits, for cores with SMULL and for those without it.
 */
#ifndef FERRULE_KERNELS_HIGH_PRODUCT_H_INCLUDED
#define FERRULE_KERNELS_HIGH_PRODUCT_H_INCLUDED

#include <stdint.h>

/* Define as 1 to build the product from products of 32 bits, which is faster only without SMULL. */
#ifndef FERRULE_SHORT_MULTIPLY
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
#define FERRULE_SHORT_MULTIPLY 1
#else
#define FERRULE_SHORT_MULTIPLY 0
#endif
#endif

/** @brief Return a * b / 2^32, halves up. */
static inline int32_t ferrule_high_product_rounded(int32_t a, int32_t b)
{
#if FERRULE_SHORT_MULTIPLY
    const int32_t a_high = a >> 16;
    const uint32_t a_low = (uint32_t)a & 0xFFFFu;
    const int32_t b_high = b >> 16;
    const uint32_t b_low = (uint32_t)b & 0xFFFFu;
    const int32_t cross = a_high * (int32_t)b_low;
    const int32_t other = (int32_t)a_low * b_high;
    const uint32_t middle =
        (a_low * b_low >> 16) + ((uint32_t)cross & 0xFFFFu) + ((uint32_t)other & 0xFFFFu);

    return a_high * b_high + (cross >> 16) + (other >> 16) + (int32_t)((middle + 0x8000u) >> 16);
#else
    const int64_t product = (int64_t)a * b;

    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
#endif
}

/** @brief Return a * b / 2^32, rounded down. */
static inline int32_t ferrule_high_product_floor(int32_t a, int32_t b)
{
#if FERRULE_SHORT_MULTIPLY
    const int32_t a_high = a >> 16;
    const uint32_t a_low = (uint32_t)a & 0xFFFFu;
    /* cppcheck-suppress shiftNegativeLHS ; the shift is arithmetic with all compilers supported */
    const int32_t b_high = b >> 16;
    const uint32_t b_low = (uint32_t)b & 0xFFFFu;
    const int32_t cross = a_high * (int32_t)b_low;
    const int32_t other = (int32_t)a_low * b_high;
    const uint32_t middle =
        (a_low * b_low >> 16) + ((uint32_t)cross & 0xFFFFu) + ((uint32_t)other & 0xFFFFu);

    return a_high * b_high + (cross >> 16) + (other >> 16) + (int32_t)(middle >> 16);
#else
    return (int32_t)(((int64_t)a * b) >> 32);
#endif
}

/** @brief Return a * b / 2^31, halves up; the result fits into 32 bits. */
static inline int32_t ferrule_doubled_high_product(int32_t a, int32_t b)
{
#if FERRULE_SHORT_MULTIPLY
    const int32_t a_high = a >> 16;
    const uint32_t a_low = (uint32_t)a & 0xFFFFu;
    /* cppcheck-suppress shiftNegativeLHS ; the shift is arithmetic with all compilers supported */
    const int32_t b_high = b >> 16;
    const uint32_t b_low = (uint32_t)b & 0xFFFFu;
    const int32_t cross = a_high * (int32_t)b_low;
    const int32_t other = (int32_t)a_low * b_high;
    const uint32_t middle =
        (a_low * b_low >> 16) + ((uint32_t)cross & 0xFFFFu) + ((uint32_t)other & 0xFFFFu);
    const uint32_t high = (uint32_t)(a_high * b_high) + (uint32_t)((cross >> 16) + (other >> 16));

    /* The lowest bit of the result is bit 15 of `middle`, and the next one rounds. */
    return (int32_t)(2u * high + ((middle + 0x4000u) >> 15));
#else
    return (int32_t)(((int64_t)a * b + (INT32_C(1) << 30)) >> 31);
#endif
}

#endif
