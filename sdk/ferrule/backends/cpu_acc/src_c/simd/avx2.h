/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file AVX2 with FMA: 8 lanes, words of two int16 (int8 minus the zero point).
 */
#ifndef FERRULE_CPU_ACC_SIMD_AVX2_H_INCLUDED
#define FERRULE_CPU_ACC_SIMD_AVX2_H_INCLUDED

#include <immintrin.h>

#include "ferrule/cpu_acc/host.h"

#define FERRULE_TARGET      __attribute__((target("avx2,fma")))
#define FERRULE_INLINE      static inline __attribute__((always_inline)) FERRULE_TARGET
#define FERRULE_NAMED(name) name##_avx2

enum {
    LANES = 8,
    WORD_ELEMENTS = 2,
    TILE_4 = 2, /* pixels per tile with 4, 2 and 1 blocks of channels */
    TILE_2 = 5,
    TILE_1 = 8,
    PARTS = 2, /* vectors of sums per depthwise vector */
    GROUP = 2, /* taps added at once */
    VECTOR = LANES * PARTS,
};

typedef int16_t element;
typedef __m256i vector;
typedef __m256 floats;

FERRULE_INLINE element to_element(int8_t value, int32_t zero_point)
{
    return (element)(value - zero_point);
}

FERRULE_INLINE element padding_element(int32_t zero_point)
{
    (void)zero_point;
    return 0;
}

FERRULE_INLINE vector load_vector(const void *source)
{
    return _mm256_loadu_si256((const __m256i *)source);
}

FERRULE_INLINE vector load_word(const element *source)
{
    int32_t word;
    __builtin_memcpy(&word, source, sizeof(word));
    return _mm256_set1_epi32(word);
}

FERRULE_INLINE vector multiply_add(vector sum, vector data, vector weights)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(data, weights));
}

/** Return ferrule_requantize of each lane plus the zero point, clamped. */
FERRULE_INLINE vector requantize(vector sum, const int32_t *scale,
                                 const struct ferrule_output_s8 *output)
{
    vector multiplier = load_vector(scale + LANES);
    vector left = load_vector(scale + 2 * LANES);
    vector right = load_vector(scale + 3 * LANES);
    vector half = _mm256_set1_epi64x(INT64_C(1) << 30);
    vector one = _mm256_set1_epi32(1);
    vector value = _mm256_sllv_epi32(sum, left);
    vector even = _mm256_add_epi64(_mm256_mul_epi32(value, multiplier), half);
    vector odd = _mm256_add_epi64(
        _mm256_mul_epi32(_mm256_srli_epi64(value, 32), _mm256_srli_epi64(multiplier, 32)), half);
    vector high = _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
    vector mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, right), one);
    vector threshold = _mm256_add_epi32(_mm256_srli_epi32(mask, 1), _mm256_srli_epi32(high, 31));
    vector up = _mm256_cmpgt_epi32(_mm256_and_si256(high, mask), threshold);
    vector scaled = _mm256_sub_epi32(_mm256_srav_epi32(high, right), up);

    scaled = _mm256_add_epi32(scaled, _mm256_set1_epi32(output->zero_point));
    scaled = _mm256_max_epi32(scaled, _mm256_set1_epi32(output->low));
    return _mm256_min_epi32(scaled, _mm256_set1_epi32(output->high));
}

/** Return round(sum * scale + offset), clamped; below the zero point, the drop is subtracted first.
 */
FERRULE_INLINE vector round_scaled(vector sum, const int32_t *scale,
                                   const struct ferrule_output_s8 *output)
{
    floats value =
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_castsi256_ps(load_vector(scale + LANES)),
                        _mm256_castsi256_ps(load_vector(scale + 2 * LANES)));
    floats below = _mm256_cmp_ps(value, _mm256_set1_ps((float)output->zero_point), _CMP_LT_OQ);
    floats drop = _mm256_and_ps(below, _mm256_castsi256_ps(load_vector(scale + 3 * LANES)));
    vector rounded = _mm256_max_epi32(_mm256_cvtps_epi32(_mm256_sub_ps(value, drop)),
                                      _mm256_set1_epi32(output->low));

    return _mm256_min_epi32(rounded, _mm256_set1_epi32(output->high));
}

/** Return ONNX's rule: the float32 product, halves to even, plus the zero point, clamped. */
FERRULE_INLINE vector round_product(vector sum, const int32_t *scale,
                                    const struct ferrule_output_s8 *output)
{
    floats value =
        _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_castsi256_ps(load_vector(scale + LANES)));

    value = _mm256_max_ps(value, _mm256_set1_ps((float)(output->low - output->zero_point)));
    value = _mm256_min_ps(value, _mm256_set1_ps((float)(output->high - output->zero_point)));
    return _mm256_add_epi32(_mm256_cvtps_epi32(value), _mm256_set1_epi32(output->zero_point));
}

/** Store the first `count` lanes, which hold int8 values. */
FERRULE_INLINE void store_block(int8_t *target, vector values, int32_t count)
{
    __m128i halfwords =
        _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    int64_t bytes = _mm_cvtsi128_si64(_mm_packs_epi16(halfwords, halfwords));

    if (count >= LANES) {
        __builtin_memcpy(target, &bytes, LANES);
    } else {
        for (int32_t i = 0; i < count; ++i) {
            target[i] = (int8_t)(bytes >> (8 * i));
        }
    }
}

/** Store four neighbouring blocks of lanes, which hold int8 values. */
FERRULE_INLINE void store_four(int8_t *target, const vector *values)
{
    vector order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vector bytes = _mm256_packs_epi16(_mm256_packs_epi32(values[0], values[1]),
                                      _mm256_packs_epi32(values[2], values[3]));

    _mm256_storeu_si256((__m256i *)(void *)target, _mm256_permutevar8x32_epi32(bytes, order));
}

/** Add GROUP taps of VECTOR neighbouring elements to the sums of the parts. */
FERRULE_INLINE void multiply_add_taps(vector *sums, const element *data, const int32_t *offsets,
                                      const int8_t *weights)
{
    vector tap0 = load_vector(data + offsets[0]);
    vector tap1 = load_vector(data + offsets[1]);

    sums[0] = multiply_add(sums[0], _mm256_unpacklo_epi16(tap0, tap1), load_vector(weights));
    sums[1] = multiply_add(sums[1], _mm256_unpackhi_epi16(tap0, tap1), load_vector(weights + 32));
}

/** Store the first `count` elements of the parts, in the order of the data. */
FERRULE_INLINE void store_parts(int8_t *target, const vector *parts, int32_t count)
{
    vector halfwords = _mm256_packs_epi32(parts[0], parts[1]);
    __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(halfwords), _mm256_extracti128_si256(halfwords, 1));

    if (count >= VECTOR) {
        _mm_storeu_si128((__m128i *)(void *)target, bytes);
    } else {
        int8_t whole[VECTOR];

        _mm_storeu_si128((__m128i *)(void *)whole, bytes);
        for (int32_t i = 0; i < count; ++i) {
            target[i] = whole[i];
        }
    }
}

FERRULE_INLINE floats load_floats(const float *source)
{
    return _mm256_loadu_ps(source);
}

FERRULE_INLINE floats repeat_float(float value)
{
    return _mm256_set1_ps(value);
}

FERRULE_INLINE floats multiply_add_floats(floats sum, floats data, floats weights)
{
    return _mm256_fmadd_ps(data, weights, sum);
}

/* The comparisons keep NaN, like those of ferrule_clamp_f32. */
FERRULE_INLINE floats clamp_floats(floats values, float low, float high)
{
    return _mm256_min_ps(repeat_float(high), _mm256_max_ps(repeat_float(low), values));
}

FERRULE_INLINE void store_floats(float *target, floats values, int32_t count)
{
    if (count >= LANES) {
        _mm256_storeu_ps(target, values);
    } else {
        float whole[LANES];

        _mm256_storeu_ps(whole, values);
        for (int32_t i = 0; i < count; ++i) {
            target[i] = whole[i];
        }
    }
}

#endif
