/* SPDX-License-Identifier: Apache-2.0 */
/* Template, included once per instruction set after its primitives (avx512.h, avx2.h or neon.h):
 * defines all kernels of ferrule/cpu_acc/host.h. */

#include "ferrule/cpu_acc/pieces.h"

#define FERRULE_JOIN_EXPANDED(a, b) a##b
#define FERRULE_JOIN(a, b)          FERRULE_JOIN_EXPANDED(a, b)

/* ---- int8 */

enum { SCALE_VECTORS = 4, VECTOR_BYTES = 4 * LANES };

/** Return sums rounded once, halves up, and clamped; for the few channels without a float32 form.
 */
__attribute__((noinline)) FERRULE_TARGET static vector round_once(vector sums, const int32_t *scale,
                                                                  struct ferrule_output_s8 output)
{
    int32_t values[LANES];

    __builtin_memcpy(values, &sums, sizeof(values));
    for (int32_t i = 0; i < LANES; ++i) {
        int32_t shift = 31 - scale[2 * LANES + i] + scale[3 * LANES + i];
        int64_t half = INT64_C(1) << (shift - 1);
        int64_t value = ((int64_t)values[i] * scale[LANES + i] + half) >> shift;

        value += output.zero_point;
        value = value < output.low ? output.low : value;
        values[i] = (int32_t)(value > output.high ? output.high : value);
    }
    return load_vector(values);
}

/** The sums of neighbouring blocks of channels at neighbouring pixels. */
struct column {
    int32_t pixels;
    int32_t blocks;
    int32_t step;     /**< elements between stored pixels */
    int32_t channels; /**< from the first block on; those beyond the blocks are not its own */
};

/** Store four whole blocks by the float32 form of their rule. */
FERRULE_INLINE void store_scaled(int8_t *target, const vector *sums, const struct column *column,
                                 const int32_t *scale, const struct ferrule_output_s8 *limits)
{
    const struct ferrule_output_s8 output = *limits; /* which no store can change */
    int32_t pixels = column->pixels;

    for (int32_t m = 0; m < pixels; ++m) {
        vector values[4];

#pragma GCC unroll 4
        for (int32_t n = 0; n < 4; ++n) {
            values[n] =
                round_scaled(sums[n * pixels + m], scale + n * SCALE_VECTORS * LANES, &output);
        }
        store_four(target, values);
        target += column->step;
    }
}

/** Store a block of a column by the rule for which the scales are. */
FERRULE_INLINE void store_block_column(int8_t *target, const vector *sums,
                                       const struct column *column, const int32_t *scale,
                                       uint8_t rounding, const struct ferrule_output_s8 *limits)
{
    const struct ferrule_output_s8 output = *limits; /* which no store can change */
    const struct column own = *column;

    /* the loops differ in their rule, so that none is asked for at each pixel */
#define FERRULE_STORE(rounded)                                                                     \
    for (int32_t m = 0; m < own.pixels; ++m) {                                                     \
        store_block(target, rounded, own.channels);                                                \
        target += own.step;                                                                        \
    }
    if (rounding == FERRULE_HOST_FLOAT) {
        FERRULE_STORE(round_scaled(sums[m], scale, &output))
    } else if (rounding == FERRULE_HOST_TFLM) {
        FERRULE_STORE(requantize(sums[m], scale, &output))
    } else if (rounding == FERRULE_HOST_ONNX) {
        FERRULE_STORE(round_product(sums[m], scale, &output))
    } else {
        FERRULE_STORE(round_once(sums[m], scale, output))
    }
#undef FERRULE_STORE
}

/** Store a column by the rules of its blocks; one copy serves the tiles of all sizes. */
__attribute__((noinline)) FERRULE_TARGET static void
store_column(int8_t *target, const vector *sums, const struct column *column, const int32_t *scales,
             const uint8_t *rounding, const struct ferrule_output_s8 *output)
{
    struct column block = *column;
    uint32_t rules = 0;

    if (column->blocks == 4 && column->channels >= 4 * LANES) {
        __builtin_memcpy(&rules, rounding, sizeof(rules));
    }
    if (rules == FERRULE_HOST_FLOAT * UINT32_C(0x01010101)) {
        store_scaled(target, sums, column, scales, output);
        return;
    }
    for (int32_t n = 0; n < column->blocks; ++n) {
        store_block_column(target, sums, &block, scales, rounding[n], output);
        target += LANES;
        sums += column->pixels;
        scales += SCALE_VECTORS * LANES;
        block.channels -= LANES;
    }
}

/** Return the stored values of sums by the rule for which the scales are. */
FERRULE_INLINE vector stored(vector sums, const int32_t *scale,
                             const struct ferrule_output_s8 *output, uint8_t rounding)
{
    if (rounding == FERRULE_HOST_FLOAT) {
        return round_scaled(sums, scale, output);
    }
    if (rounding == FERRULE_HOST_TFLM) {
        return requantize(sums, scale, output);
    }
    return rounding == FERRULE_HOST_ONNX ? round_product(sums, scale, output)
                                         : round_once(sums, scale, *output);
}

FERRULE_INLINE void convolve_taps(const struct ferrule_host_depthwise_s8_params *params,
                                  const element *data, int8_t *target, int32_t place, int32_t count)
{
    const int32_t *scales = params->scales + place * PARTS * SCALE_VECTORS * LANES;
    const int8_t *weights = params->weights + place * (params->taps / GROUP) * PARTS * VECTOR_BYTES;
    vector sums[PARTS];

#pragma GCC unroll 4
    for (int32_t p = 0; p < PARTS; ++p) {
        sums[p] = load_vector(scales + p * SCALE_VECTORS * LANES);
    }
    for (int32_t t = 0; t < params->taps; t += GROUP) {
        multiply_add_taps(sums, data, params->offsets + t, weights);
        weights += PARTS * VECTOR_BYTES;
    }
#pragma GCC unroll 4
    for (int32_t p = 0; p < PARTS; ++p) {
        sums[p] = stored(sums[p], scales + p * SCALE_VECTORS * LANES, &params->output,
                         params->rounding[place * PARTS + p]);
    }
    store_parts(target, sums, count);
}

#define SOURCE                     int8_t
#define TARGET                     element
#define OUTPUT                     int8_t
#define LAY_OUT                    lay_out_s8
#define CONVERT(value, zero_point) to_element(value, zero_point)
#define PADDING(zero_point)        padding_element(zero_point)
#include "image.inc.h"

#define KERNEL        FERRULE_NAMED(ferrule_host_conv2d_s8)
#define PARAMS        struct ferrule_host_conv2d_s8_params
#define WEIGHT        int8_t
#define SCALE         int32_t
#define SUM           vector
#define WORD_STEP     WORD_ELEMENTS
#define VECTOR_STEP   VECTOR_BYTES
#define SCALE_STEP    (SCALE_VECTORS * LANES)
#define LOAD_SUM      load_vector
#define LOAD_WORD     load_word
#define LOAD_WEIGHTS  load_vector
#define MULTIPLY_ADD  multiply_add
#define FLAGS(params) ((params)->rounding)
#define STORE(target, sums, column, scale, flags, params)                                          \
    store_column(target, sums, column, scale, flags, &(params)->output)
#include "conv2d.inc.h"
#undef MULTIPLY_TILES
#undef KERNEL
#undef PARAMS

#define KERNEL  FERRULE_NAMED(ferrule_host_depthwise_s8)
#define PARAMS  struct ferrule_host_depthwise_s8_params
#define STEP    VECTOR
#define COMPUTE convolve_taps
#include "depthwise.inc.h"

#undef SOURCE
#undef TARGET
#undef OUTPUT
#undef LAY_OUT
#undef CONVERT
#undef PADDING
#undef KERNEL
#undef PARAMS
#undef WEIGHT
#undef SCALE
#undef SUM
#undef WORD_STEP
#undef VECTOR_STEP
#undef SCALE_STEP
#undef LOAD_SUM
#undef LOAD_WORD
#undef LOAD_WEIGHTS
#undef MULTIPLY_ADD
#undef FLAGS
#undef STORE
#undef STEP
#undef COMPUTE

/* ---- float32 */

FERRULE_INLINE floats load_repeated(const float *source)
{
    return repeat_float(*source);
}

FERRULE_INLINE void store_float_column(float *target, const floats *sums,
                                       const struct column *column, float low, float high)
{
    for (int32_t n = 0; n < column->blocks; ++n) {
        int32_t channels = column->channels - n * LANES;

        for (int32_t m = 0; m < column->pixels; ++m) {
            store_floats(target + m * column->step + n * LANES, clamp_floats(*sums, low, high),
                         channels);
            ++sums;
        }
    }
}

FERRULE_INLINE void convolve_float_taps(const struct ferrule_host_depthwise_f32_params *params,
                                        const float *data, float *target, int32_t place,
                                        int32_t count)
{
    const float *weights = params->weights + place * params->taps * LANES;
    floats sums = load_floats(params->scales + place * LANES);

    for (int32_t t = 0; t < params->taps; ++t) {
        sums = multiply_add_floats(sums, load_floats(data + params->offsets[t]),
                                   load_floats(weights + t * LANES));
    }
    store_floats(target, clamp_floats(sums, params->low, params->high), count);
}

#define SOURCE                     float
#define TARGET                     float
#define OUTPUT                     float
#define LAY_OUT                    lay_out_f32
#define CONVERT(value, zero_point) ((void)(zero_point), (value))
#define PADDING(zero_point)        ((void)(zero_point), 0.0f)
#include "image.inc.h"

#define KERNEL        FERRULE_NAMED(ferrule_host_conv2d_f32)
#define PARAMS        struct ferrule_host_conv2d_f32_params
#define WEIGHT        float
#define SCALE         float
#define SUM           floats
#define WORD_STEP     1
#define VECTOR_STEP   LANES
#define SCALE_STEP    LANES
#define LOAD_SUM      load_floats
#define LOAD_WORD     load_repeated
#define LOAD_WEIGHTS  load_floats
#define MULTIPLY_ADD  multiply_add_floats
#define FLAGS(params) ((const uint8_t *)(params)->scales)
#define STORE(target, sums, column, scale, flags, params)                                          \
    ((void)(scale), (void)(flags),                                                                 \
     store_float_column(target, sums, column, (params)->low, (params)->high))
#include "conv2d.inc.h"
#undef KERNEL
#undef PARAMS

#define KERNEL  FERRULE_NAMED(ferrule_host_depthwise_f32)
#define PARAMS  struct ferrule_host_depthwise_f32_params
#define STEP    LANES
#define COMPUTE convolve_float_taps
#include "depthwise.inc.h"
