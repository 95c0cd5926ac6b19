/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file AVX-512 with VNNI: 16 lanes, words of four unsigned bytes (int8 + 128).
 */
#ifndef FERRULE_CPU_ACC_SIMD_AVX512_H_INCLUDED
#define FERRULE_CPU_ACC_SIMD_AVX512_H_INCLUDED

#include <immintrin.h>

#include "ferrule/cpu_acc/host.h"

#define FERRULE_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
#define FERRULE_INLINE static inline __attribute__((always_inline)) FERRULE_TARGET
#define FERRULE_NAMED(name) name##_avx512

enum {
    LANES = 16,
    WORD_ELEMENTS = 4,
    TILE_4 = 6, /* pixels per tile with 4, 2 and 1 blocks of channels */
    TILE_2 = 12,
    TILE_1 = 12,
    PARTS = 4, /* vectors of sums per depthwise vector */
    GROUP = 4, /* taps added at once */
    VECTOR = LANES * PARTS,
};

typedef uint8_t element;
typedef __m512i vector;
typedef __m512 floats;

FERRULE_INLINE element to_element(int8_t value, int32_t zero_point)
{
    (void)zero_point;
    return (element)((uint8_t)value ^ 0x80u);
}

FERRULE_INLINE element padding_element(int32_t zero_point)
{
    return (element)(zero_point + 128);
}

FERRULE_INLINE vector load_vector(const void *source)
{
    return _mm512_loadu_si512(source);
}

FERRULE_INLINE vector load_word(const element *source)
{
    int32_t word;
    __builtin_memcpy(&word, source, sizeof(word));
    return _mm512_set1_epi32(word);
}

FERRULE_INLINE vector multiply_add(vector sum, vector data, vector weights)
{
    return _mm512_dpbusd_epi32(sum, data, weights);
}

/** Return ferrule_requantize of each lane plus the zero point, clamped. */
FERRULE_INLINE vector requantize(vector sum, const int32_t *scale,
                                 const struct ferrule_output_s8 *output)
{
    vector multiplier = load_vector(scale + LANES);
    vector left = load_vector(scale + 2 * LANES);
    vector right = load_vector(scale + 3 * LANES);
    vector half = _mm512_set1_epi64(INT64_C(1) << 30);
    vector one = _mm512_set1_epi32(1);
    vector value = _mm512_sllv_epi32(sum, left);
    vector even = _mm512_add_epi64(_mm512_mul_epi32(value, multiplier), half);
    vector odd = _mm512_add_epi64(
        _mm512_mul_epi32(_mm512_srli_epi64(value, 32), _mm512_srli_epi64(multiplier, 32)), half);
    vector high =
        _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
    vector mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, right), one);
    vector threshold = _mm512_add_epi32(_mm512_srli_epi32(mask, 1), _mm512_srli_epi32(high, 31));
    __mmask16 up = _mm512_cmpgt_epi32_mask(_mm512_and_si512(high, mask), threshold);
    vector scaled = _mm512_srav_epi32(high, right);

    scaled = _mm512_mask_add_epi32(scaled, up, scaled, one);
    scaled = _mm512_add_epi32(scaled, _mm512_set1_epi32(output->zero_point));
    scaled = _mm512_max_epi32(scaled, _mm512_set1_epi32(output->low));
    return _mm512_min_epi32(scaled, _mm512_set1_epi32(output->high));
}

/** Return round(sum * scale + offset), clamped; below the zero point, the drop is subtracted first.
 */
FERRULE_INLINE vector round_scaled(vector sum, const int32_t *scale,
                                   const struct ferrule_output_s8 *output)
{
    floats value =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_castsi512_ps(load_vector(scale + LANES)),
                        _mm512_castsi512_ps(load_vector(scale + 2 * LANES)));
    __mmask16 below =
        _mm512_cmp_ps_mask(value, _mm512_set1_ps((float)output->zero_point), _CMP_LT_OQ);
    floats dropped = _mm512_mask_sub_ps(value, below, value,
                                        _mm512_castsi512_ps(load_vector(scale + 3 * LANES)));
    vector rounded = _mm512_max_epi32(_mm512_cvtps_epi32(dropped), _mm512_set1_epi32(output->low));

    return _mm512_min_epi32(rounded, _mm512_set1_epi32(output->high));
}

/** Return ONNX's rule: the float32 product, halves to even, plus the zero point, clamped. */
FERRULE_INLINE vector round_product(vector sum, const int32_t *scale,
                                    const struct ferrule_output_s8 *output)
{
    floats value =
        _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_castsi512_ps(load_vector(scale + LANES)));

    value = _mm512_max_ps(value, _mm512_set1_ps((float)(output->low - output->zero_point)));
    value = _mm512_min_ps(value, _mm512_set1_ps((float)(output->high - output->zero_point)));
    return _mm512_add_epi32(_mm512_cvtps_epi32(value), _mm512_set1_epi32(output->zero_point));
}

/** Store the first `count` lanes, which hold int8 values. */
FERRULE_INLINE void store_block(int8_t *target, vector values, int32_t count)
{
    __m128i bytes = _mm512_cvtepi32_epi8(values);

    if (count >= LANES) {
        _mm_storeu_si128((__m128i *)(void *)target, bytes);
    } else {
        _mm_mask_storeu_epi8(target, (__mmask16)((1u << count) - 1u), bytes);
    }
}

/** Store four neighbouring blocks of lanes, which hold int8 values. */
FERRULE_INLINE void store_four(int8_t *target, const vector *values)
{
    vector order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    vector bytes = _mm512_packs_epi16(_mm512_packs_epi32(values[0], values[1]),
                                      _mm512_packs_epi32(values[2], values[3]));

    _mm512_storeu_si512(target, _mm512_permutexvar_epi32(order, bytes));
}

/** Add GROUP taps of VECTOR neighbouring elements to the sums of the parts. */
FERRULE_INLINE void multiply_add_taps(vector *sums, const element *data, const int32_t *offsets,
                                      const int8_t *weights)
{
    vector tap0 = load_vector(data + offsets[0]);
    vector tap1 = load_vector(data + offsets[1]);
    vector tap2 = load_vector(data + offsets[2]);
    vector tap3 = load_vector(data + offsets[3]);
    vector low01 = _mm512_unpacklo_epi8(tap0, tap1);
    vector high01 = _mm512_unpackhi_epi8(tap0, tap1);
    vector low23 = _mm512_unpacklo_epi8(tap2, tap3);
    vector high23 = _mm512_unpackhi_epi8(tap2, tap3);

    sums[0] =
        _mm512_dpbusd_epi32(sums[0], _mm512_unpacklo_epi16(low01, low23), load_vector(weights));
    sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_unpackhi_epi16(low01, low23),
                                  load_vector(weights + 64));
    sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_unpacklo_epi16(high01, high23),
                                  load_vector(weights + 128));
    sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_unpackhi_epi16(high01, high23),
                                  load_vector(weights + 192));
}

/** Store the first `count` elements of the parts, in the order of the data. */
FERRULE_INLINE void store_parts(int8_t *target, const vector *parts, int32_t count)
{
    vector bytes = _mm512_packs_epi16(_mm512_packs_epi32(parts[0], parts[1]),
                                      _mm512_packs_epi32(parts[2], parts[3]));

    if (count >= VECTOR) {
        _mm512_storeu_si512(target, bytes);
    } else {
        _mm512_mask_storeu_epi8(target, (__mmask64)((UINT64_C(1) << count) - 1u), bytes);
    }
}

FERRULE_INLINE floats load_floats(const float *source)
{
    return _mm512_loadu_ps(source);
}

FERRULE_INLINE floats repeat_float(float value)
{
    return _mm512_set1_ps(value);
}

FERRULE_INLINE floats multiply_add_floats(floats sum, floats data, floats weights)
{
    return _mm512_fmadd_ps(data, weights, sum);
}

/* The comparisons keep NaN, like those of ferrule_clamp_f32. */
FERRULE_INLINE floats clamp_floats(floats values, float low, float high)
{
    return _mm512_min_ps(repeat_float(high), _mm512_max_ps(repeat_float(low), values));
}

FERRULE_INLINE void store_floats(float *target, floats values, int32_t count)
{
    if (count >= LANES) {
        _mm512_storeu_ps(target, values);
    } else {
        _mm512_mask_storeu_ps(target, (__mmask16)((1u << count) - 1u), values);
    }
}

#endif
