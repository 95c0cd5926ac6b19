/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Pairs of 16-bit numbers in words: instructions of the DSP extension, or plain C on other
 * cores.
 *
 * Words are little-endian: the first byte or halfword in memory is the low one.
 */
#ifndef FERRULE_KERNELS_DUAL_H_INCLUDED
#define FERRULE_KERNELS_DUAL_H_INCLUDED

#include <stdint.h>
#include <string.h>

#include "ferrule/kernels/high_product.h"

/* Define as 0 to use plain C. */
#ifndef FERRULE_HAS_DSP
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
#define FERRULE_HAS_DSP 1
#else
#define FERRULE_HAS_DSP 0
#endif
#endif

/* Freestanding compilers call memcpy as a function even for a few bytes. */
#if defined(__GNUC__)
#define FERRULE_COPY_WORD(target, source) (void)__builtin_memcpy((target), (source), 4)
#else
#define FERRULE_COPY_WORD(target, source) (void)memcpy((target), (source), 4)
#endif

/** @brief Load four bytes from any address. */
static inline uint32_t ferrule_load_word(const int8_t *source)
{
    uint32_t word;
    FERRULE_COPY_WORD(&word, source);
    return word;
}

/** @brief Return two 16-bit numbers as a word. */
static inline uint32_t ferrule_pair(int32_t low, int32_t high)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(result) : "r"(low), "r"(high));
    return result;
#else
    return ((uint32_t)low & 0xffffu) | ((uint32_t)high << 16);
#endif
}

/** @brief Return the high halves of two words, that of the first one as the low half. */
static inline uint32_t ferrule_high_halves(uint32_t low, uint32_t high)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(result) : "r"(high), "r"(low));
    return result;
#else
    return (low >> 16) | (high & 0xffff0000u);
#endif
}

/** @brief Return bytes 0 and 2, sign-extended to 16 bits. */
static inline uint32_t ferrule_even_bytes(uint32_t word)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("sxtb16 %0, %1" : "=r"(result) : "r"(word));
    return result;
#else
    return ferrule_pair((int8_t)word, (int8_t)(word >> 16));
#endif
}

/** @brief Return bytes 1 and 3, sign-extended to 16 bits. */
static inline uint32_t ferrule_odd_bytes(uint32_t word)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(result) : "r"(word));
    return result;
#else
    return ferrule_pair((int8_t)(word >> 8), (int8_t)(word >> 24));
#endif
}

/** @brief Add bytes 0 and 2 of a word to two 16-bit sums, modulo 2^16. */
static inline uint32_t ferrule_add_even_bytes(uint32_t sums, uint32_t word)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("sxtab16 %0, %1, %2" : "=r"(result) : "r"(sums), "r"(word));
    return result;
#else
    return ferrule_pair((int16_t)sums + (int8_t)word, (int16_t)(sums >> 16) + (int8_t)(word >> 16));
#endif
}

/** @brief Add bytes 1 and 3 of a word to two 16-bit sums, modulo 2^16. */
static inline uint32_t ferrule_add_odd_bytes(uint32_t sums, uint32_t word)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(sums), "r"(word));
    return result;
#else
    return ferrule_add_even_bytes(sums, word >> 8);
#endif
}

/** @brief Return the larger of each pair of signed bytes. */
static inline uint32_t ferrule_larger_bytes(uint32_t a, uint32_t b)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("ssub8 %0, %1, %2\n\t"
            "sel %0, %1, %2"
            : "=&r"(result)
            : "r"(a), "r"(b)
            : "cc");
    return result;
#else
    uint32_t result = 0;

    for (uint32_t shift = 0; shift < 32u; shift += 8u) {
        uint32_t larger = (int8_t)(a >> shift) > (int8_t)(b >> shift) ? a : b;
        result |= larger & ((uint32_t)0xff << shift);
    }
    return result;
#endif
}

/** @brief Return the larger of each pair of signed halves. */
static inline uint32_t ferrule_larger_halves(uint32_t a, uint32_t b)
{
#if FERRULE_HAS_DSP
    uint32_t spare;

    __asm__("ssub16 %1, %0, %2\n\t"
            "sel %0, %0, %2"
            : "+r"(a), "=&r"(spare)
            : "r"(b)
            : "cc");
    return a;
#else
    const uint32_t low = (int16_t)a > (int16_t)b ? a : b;
    const uint32_t high = (int16_t)(a >> 16) > (int16_t)(b >> 16) ? a : b;

    return (low & 0xffffu) | (high & 0xffff0000u);
#endif
}

/** @brief Return the smaller of each pair of signed bytes. */
static inline uint32_t ferrule_smaller_bytes(uint32_t a, uint32_t b)
{
#if FERRULE_HAS_DSP
    uint32_t result;
    __asm__("ssub8 %0, %1, %2\n\t"
            "sel %0, %2, %1"
            : "=&r"(result)
            : "r"(a), "r"(b)
            : "cc");
    return result;
#else
    return a ^ b ^ ferrule_larger_bytes(a, b);
#endif
}

/** @brief Return the value, saturated to int8. */
static inline int32_t ferrule_saturate_s8(int32_t value)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    int32_t result;
    __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(value) : "cc");
    return result;
#else
    if (value < INT8_MIN) {
        return INT8_MIN;
    }
    return value > INT8_MAX ? INT8_MAX : value;
#endif
}

/** @brief Return the value, saturated to int16. */
static inline int32_t ferrule_saturate_s16(int32_t value)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    int32_t result;
    __asm__("ssat %0, #16, %1" : "=r"(result) : "r"(value) : "cc");
    return result;
#else
    if (value < INT16_MIN) {
        return INT16_MIN;
    }
    return value > INT16_MAX ? INT16_MAX : value;
#endif
}

/** @brief Return round(a * b / 2^32), halves up. */
static inline int32_t ferrule_high_product(int32_t a, int32_t b)
{
#if FERRULE_HAS_DSP
    int32_t result;
    __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
    return result;
#else
    return ferrule_high_product_rounded(a, b);
#endif
}

/** @brief Return sum + x.low * y.low + x.high * y.high, modulo 2^32. */
static inline uint32_t ferrule_dual_multiply_add(uint32_t x, uint32_t y, uint32_t sum)
{
#if FERRULE_HAS_DSP
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    sum += (uint32_t)((int32_t)(int16_t)x * (int16_t)y);
    return sum + (uint32_t)((int32_t)(int16_t)(x >> 16) * (int16_t)(y >> 16));
#endif
}

/** @brief Return sum + x.low * y.low + x.high * y.high. */
static inline int64_t ferrule_dual_multiply_add_long(uint32_t x, uint32_t y, int64_t sum)
{
#if FERRULE_HAS_DSP
    __asm__("smlald %Q0, %R0, %1, %2" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    int32_t low = (int32_t)(int16_t)x * (int16_t)y;
    int32_t high = (int32_t)(int16_t)(x >> 16) * (int16_t)(y >> 16);

    return sum + low + high;
#endif
}

/** @brief Return sum + x.low * y.low, modulo 2^32. */
static inline uint32_t ferrule_low_low_multiply_add(uint32_t x, uint32_t y, uint32_t sum)
{
#if FERRULE_HAS_DSP
    __asm__("smlabb %0, %1, %2, %0" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    return sum + (uint32_t)((int32_t)(int16_t)x * (int16_t)y);
#endif
}

/** @brief Return sum + x.high * y.high, modulo 2^32. */
static inline uint32_t ferrule_high_high_multiply_add(uint32_t x, uint32_t y, uint32_t sum)
{
#if FERRULE_HAS_DSP
    __asm__("smlatt %0, %1, %2, %0" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    return sum + (uint32_t)((int32_t)(int16_t)(x >> 16) * (int16_t)(y >> 16));
#endif
}

/** @brief Return sum + x.low * y.high, modulo 2^32. */
static inline uint32_t ferrule_low_high_multiply_add(uint32_t x, uint32_t y, uint32_t sum)
{
#if FERRULE_HAS_DSP
    __asm__("smlabt %0, %1, %2, %0" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    return sum + (uint32_t)((int32_t)(int16_t)x * (int16_t)(y >> 16));
#endif
}

#endif
