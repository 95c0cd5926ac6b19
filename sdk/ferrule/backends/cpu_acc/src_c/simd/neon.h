/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file NEON: 4 lanes, words of two int16 (int8 minus the zero point).
 */
#ifndef FERRULE_CPU_ACC_SIMD_NEON_H_INCLUDED
#define FERRULE_CPU_ACC_SIMD_NEON_H_INCLUDED

#include <arm_neon.h>

#include "ferrule/cpu_acc/host.h"

#define FERRULE_TARGET
#define FERRULE_INLINE      static inline __attribute__((always_inline))
#define FERRULE_NAMED(name) name##_neon

enum {
    LANES = 4,
    WORD_ELEMENTS = 2,
    TILE_4 = 4, /* pixels per tile with 4, 2 and 1 blocks of channels */
    TILE_2 = 8,
    TILE_1 = 8,
    PARTS = 2, /* vectors of sums per depthwise vector */
    GROUP = 2, /* taps added at once */
    VECTOR = LANES * PARTS,
};

typedef int16_t element;
typedef int32x4_t vector;
typedef float32x4_t floats;

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
    return vreinterpretq_s32_s8(vld1q_s8((const int8_t *)source));
}

FERRULE_INLINE vector load_word(const element *source)
{
    int32_t word;
    __builtin_memcpy(&word, source, sizeof(word));
    return vdupq_n_s32(word);
}

/* Weights and data both have two int16 per lane. */
FERRULE_INLINE vector multiply_add(vector sum, vector data, vector weights)
{
    int16x8_t x = vreinterpretq_s16_s32(data);
    int16x8_t w = vreinterpretq_s16_s32(weights);
    vector low = vmull_s16(vget_low_s16(x), vget_low_s16(w));
    vector high = vmull_s16(vget_high_s16(x), vget_high_s16(w));

    return vaddq_s32(sum, vpaddq_s32(low, high));
}

/** Return ferrule_requantize of each lane plus the zero point, clamped. */
FERRULE_INLINE vector requantize(vector sum, const int32_t *scale,
                                 const struct ferrule_output_s8 *output)
{
    vector right = load_vector(scale + 3 * LANES);
    vector one = vdupq_n_s32(1);
    vector value = vshlq_s32(sum, load_vector(scale + 2 * LANES));
    vector high = vqrdmulhq_s32(value, load_vector(scale + LANES));
    vector mask = vsubq_s32(vshlq_s32(one, right), one);
    uint32x4_t sign = vshrq_n_u32(vreinterpretq_u32_s32(high), 31);
    uint32x4_t half = vshrq_n_u32(vreinterpretq_u32_s32(mask), 1);
    vector threshold = vreinterpretq_s32_u32(vaddq_u32(half, sign));
    uint32x4_t up = vcgtq_s32(vandq_s32(high, mask), threshold);
    vector scaled = vsubq_s32(vshlq_s32(high, vnegq_s32(right)), vreinterpretq_s32_u32(up));

    scaled = vaddq_s32(scaled, vdupq_n_s32(output->zero_point));
    return vminq_s32(vmaxq_s32(scaled, vdupq_n_s32(output->low)), vdupq_n_s32(output->high));
}

/** Return round(sum * scale + offset), clamped; below the zero point, the drop is subtracted first.
 */
FERRULE_INLINE vector round_scaled(vector sum, const int32_t *scale,
                                   const struct ferrule_output_s8 *output)
{
    float32x4_t value =
        vfmaq_f32(vreinterpretq_f32_s32(load_vector(scale + 2 * LANES)), vcvtq_f32_s32(sum),
                  vreinterpretq_f32_s32(load_vector(scale + LANES)));
    uint32x4_t below = vcltq_f32(value, vdupq_n_f32((float)output->zero_point));
    uint32x4_t drop = vandq_u32(below, vreinterpretq_u32_s32(load_vector(scale + 3 * LANES)));
    vector rounded = vcvtnq_s32_f32(vsubq_f32(value, vreinterpretq_f32_u32(drop)));

    rounded = vmaxq_s32(rounded, vdupq_n_s32(output->low));
    return vminq_s32(rounded, vdupq_n_s32(output->high));
}

/** Return ONNX's rule: the float32 product, halves to even, plus the zero point, clamped. */
FERRULE_INLINE vector round_product(vector sum, const int32_t *scale,
                                    const struct ferrule_output_s8 *output)
{
    float32x4_t value =
        vmulq_f32(vcvtq_f32_s32(sum), vreinterpretq_f32_s32(load_vector(scale + LANES)));

    value = vmaxq_f32(value, vdupq_n_f32((float)(output->low - output->zero_point)));
    value = vminq_f32(value, vdupq_n_f32((float)(output->high - output->zero_point)));
    return vaddq_s32(vcvtnq_s32_f32(value), vdupq_n_s32(output->zero_point));
}

/** Store the first `count` lanes, which hold int8 values. */
FERRULE_INLINE void store_block(int8_t *target, vector values, int32_t count)
{
    int32_t whole[LANES];

    vst1q_s32(whole, values);
    for (int32_t i = 0; i < (count < LANES ? count : LANES); ++i) {
        target[i] = (int8_t)whole[i];
    }
}

/** Store four neighbouring blocks of lanes, which hold int8 values. */
FERRULE_INLINE void store_four(int8_t *target, const vector *values)
{
    int16x8_t low = vcombine_s16(vmovn_s32(values[0]), vmovn_s32(values[1]));
    int16x8_t high = vcombine_s16(vmovn_s32(values[2]), vmovn_s32(values[3]));

    vst1q_s8(target, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

/** Add GROUP taps of VECTOR neighbouring elements to the sums of the parts. */
FERRULE_INLINE void multiply_add_taps(vector *sums, const element *data, const int32_t *offsets,
                                      const int8_t *weights)
{
    int16x8_t tap0 = vld1q_s16(data + offsets[0]);
    int16x8_t tap1 = vld1q_s16(data + offsets[1]);

    sums[0] =
        multiply_add(sums[0], vreinterpretq_s32_s16(vzip1q_s16(tap0, tap1)), load_vector(weights));
    sums[1] = multiply_add(sums[1], vreinterpretq_s32_s16(vzip2q_s16(tap0, tap1)),
                           load_vector(weights + 16));
}

/** Store the first `count` elements of the parts, in the order of the data. */
FERRULE_INLINE void store_parts(int8_t *target, const vector *parts, int32_t count)
{
    int8x8_t bytes = vmovn_s16(vcombine_s16(vmovn_s32(parts[0]), vmovn_s32(parts[1])));

    if (count >= VECTOR) {
        vst1_s8(target, bytes);
    } else {
        int8_t whole[VECTOR];

        vst1_s8(whole, bytes);
        for (int32_t i = 0; i < count; ++i) {
            target[i] = whole[i];
        }
    }
}

FERRULE_INLINE floats load_floats(const float *source)
{
    return vld1q_f32(source);
}

FERRULE_INLINE floats repeat_float(float value)
{
    return vdupq_n_f32(value);
}

FERRULE_INLINE floats multiply_add_floats(floats sum, floats data, floats weights)
{
    return vfmaq_f32(sum, data, weights);
}

FERRULE_INLINE floats clamp_floats(floats values, float low, float high)
{
    return vminq_f32(vmaxq_f32(values, repeat_float(low)), repeat_float(high));
}

FERRULE_INLINE void store_floats(float *target, floats values, int32_t count)
{
    if (count >= LANES) {
        vst1q_f32(target, values);
    } else {
        float whole[LANES];

        vst1q_f32(whole, values);
        for (int32_t i = 0; i < count; ++i) {
            target[i] = whole[i];
        }
    }
}

#endif
