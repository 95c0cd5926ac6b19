/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/float_blocks.inc.h"

#include <float.h>

#include "ferrule/kernels/requantize.h"

int32_t ferrule_float_limits(float low, float high)
{
    if (high < 0.0f || (low != 0.0f && low > -FLT_MAX)) {
        return FERRULE_FLOAT_LIMITED;
    }
    if (low == 0.0f) {
        return high < FLT_MAX ? FERRULE_FLOAT_RELU_N : FERRULE_FLOAT_RELU;
    }
    return high < FLT_MAX ? FERRULE_FLOAT_LIMITED : FERRULE_FLOAT_FINITE;
}

static const float *moved(const float *from, int32_t bytes)
{
    return from + bytes / (int32_t)sizeof(float);
}

/* Add the products of adjacent elements and weights to a sum. */
static float sum_run(float sum, const float *image, const float *weight, int32_t count)
{
    for (; count >= 4; count -= 4) {
        sum += image[0] * weight[0];
        sum += image[1] * weight[1];
        sum += image[2] * weight[2];
        sum += image[3] * weight[3];
        image += 4;
        weight += 4;
    }
    for (; count > 0; --count) {
        sum += *image++ * *weight++;
    }
    return sum;
}

static float sum_lane(float sum, const float *image, const float *weight, int32_t count,
                      int32_t block)
{
    for (int32_t k = 0; k < count; ++k) {
        sum += image[k] * *weight;
        weight += block;
    }
    return sum;
}

static float sum_window(const struct ferrule_float_pixels *pixels, const float *image,
                        const float *weight, int32_t block)
{
    float sum = 0.0f;

    for (int32_t i = 0; i < pixels->rows; ++i) {
        for (int32_t j = 0; j < pixels->runs; ++j) {
            sum = block == 1 ? sum_run(sum, image, weight, pixels->count)
                             : sum_lane(sum, image, weight, pixels->count, block);
            weight += pixels->count * block;
            image += pixels->count;
            image = moved(image, j + 1 < pixels->runs ? pixels->run_step : pixels->row_step);
        }
        weight = moved(weight, pixels->weights_beside);
    }
    return sum;
}

static void store_pixel(const struct ferrule_float_pixels *pixels, const float *image,
                        float *output, int32_t block)
{
    const int32_t rows = pixels->rows * pixels->runs * pixels->count * block +
                         pixels->rows * pixels->weights_beside / (int32_t)sizeof(float);
    const float *stream = pixels->stream;
    const float *bias = pixels->bias;

    for (int32_t b = 0; b < pixels->blocks; ++b) {
        const int32_t channels = b + 1 < pixels->blocks ? block : pixels->last;
        const float *end = moved(stream + rows, pixels->weights_behind);

        if (block > 1) {
            bias = end;
            end += block;
        }
        for (int32_t c = 0; c < channels; ++c) {
            const float sum = sum_window(pixels, image, stream + c, block);

            *output++ = ferrule_clamp_f32(sum + *bias++, pixels->low, pixels->high);
        }
        stream = moved(end, pixels->weights_before);
    }
}

static void store_plainly(const struct ferrule_float_pixels *pixels, int32_t block)
{
    const float *image = pixels->image;
    float *output = pixels->output;

    for (int32_t i = 0; i < pixels->pixels; ++i) {
        store_pixel(pixels, image, output, block);
        image = moved(image, pixels->image_step);
        output += pixels->output_step / (int32_t)sizeof(float);
    }
}

static float sum_taps(const struct ferrule_float_pixels *pixels, const float *image,
                      const float *weight, int32_t block)
{
    float sum = 0.0f;

    for (int32_t i = 0; i < pixels->rows; ++i) {
        for (int32_t j = 0; j < pixels->runs; ++j) {
            sum += *image * *weight;
            image = moved(image, pixels->run_step);
            weight += block;
        }
        image = moved(image, pixels->row_step);
        weight = moved(weight, pixels->weights_beside);
    }
    return sum;
}

static void store_channels(const struct ferrule_float_pixels *pixels, const float *image,
                           float *output)
{
    const int32_t block = pixels->last;
    const int32_t rows = pixels->rows * pixels->runs * block +
                         pixels->rows * pixels->weights_beside / (int32_t)sizeof(float);
    const float *stream = pixels->stream;
    const float *bias = pixels->bias;
    int32_t repeated = 0;

    for (int32_t b = 0; b < pixels->blocks; ++b) {
        const float *end = moved(stream + rows, pixels->weights_behind);

        if (b > 0 && b + 1 == pixels->blocks) {
            image = moved(image, -pixels->count);
            output -= pixels->count / (int32_t)sizeof(float);
        }
        if (pixels->bias == NULL) {
            bias = end;
            end += block;
        }
        for (int32_t c = 0; c < block; ++c) {
            const float sum = sum_taps(pixels, image, stream + c, block);

            *output++ = ferrule_clamp_f32(sum + *bias++, pixels->low, pixels->high);
            if (++repeated == pixels->multiplier) {
                repeated = 0;
                ++image;
            }
        }
        stream = moved(end, pixels->weights_before);
    }
}

static void store_channels_plainly(const struct ferrule_float_pixels *pixels)
{
    const float *image = pixels->image;
    float *output = pixels->output;

    for (int32_t i = 0; i < pixels->pixels; ++i) {
        store_channels(pixels, image, output);
        image = moved(image, pixels->image_step);
        output += pixels->output_step / (int32_t)sizeof(float);
    }
}

void ferrule_float_blocks_1(struct ferrule_float_pixels *pixels)
{
    store_plainly(pixels, 1);
}

void ferrule_float_channels(struct ferrule_float_pixels *pixels)
{
    store_channels_plainly(pixels);
}

#if FERRULE_HAS_VFP

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* In place of the channels of a block: each channel has its own weights. */
#define OWN 0

/* Compute the pixels, in pairs but for an odd last one. */
ALWAYS_INLINE void store_scalars(const struct ferrule_float_pixels *pixels, int32_t block)
{
    if (pixels->pixels > 1) {
        if (block == OWN) {
            ferrule_float_pairs_of_channels(pixels);
        } else if (block == 4) {
            ferrule_float_pairs_4(pixels);
        } else {
            ferrule_float_pairs_8(pixels);
        }
    } else if (block == OWN) {
        ferrule_float_single_channels(pixels);
    } else if (block == 4) {
        ferrule_float_singles_4(pixels);
    } else {
        ferrule_float_singles_8(pixels);
    }
}

#if FERRULE_HAS_MVE_FLOAT

/* Returns the pixels left: an odd last one, and all from those on that had too small numbers. */
ALWAYS_INLINE int32_t store_vectors(const struct ferrule_float_pixels *pixels, int32_t block)
{
    if (pixels->pixels > 1) {
        return block == OWN ? ferrule_float_vector_pairs_of_channels(pixels)
               : block == 4 ? ferrule_float_vector_pairs_4(pixels)
                            : ferrule_float_vector_pairs_8(pixels);
    }
    return block == OWN ? ferrule_float_vector_single_channels(pixels)
           : block == 4 ? ferrule_float_vector_singles_4(pixels)
                        : ferrule_float_vector_singles_8(pixels);
}

#endif

static void advance(struct ferrule_float_pixels *pixels, int32_t count)
{
    pixels->image = moved(pixels->image, count * pixels->image_step);
    pixels->output += count * (pixels->output_step / (int32_t)sizeof(float));
    pixels->pixels -= count;
}

ALWAYS_INLINE void store_in_blocks(struct ferrule_float_pixels *pixels, int32_t block)
{
    while (pixels->pixels > 0) {
        const int32_t together = pixels->pixels > 1 ? 2 : 1;

#if FERRULE_HAS_MVE_FLOAT
        advance(pixels, pixels->pixels - store_vectors(pixels, block));
#endif
        if (pixels->pixels >= together) { /* vectors: a number was too small for them */
            const int32_t left = pixels->pixels;
            const int32_t count = FERRULE_HAS_MVE_FLOAT ? together : left - left % together;

            pixels->pixels = count;
            store_scalars(pixels, block);
            pixels->pixels = left;
            advance(pixels, count);
        }
    }
}

void ferrule_float_blocks_4(struct ferrule_float_pixels *pixels)
{
    store_in_blocks(pixels, 4);
}

void ferrule_float_blocks_8(struct ferrule_float_pixels *pixels)
{
    store_in_blocks(pixels, 8);
}

void ferrule_float_channels_8(struct ferrule_float_pixels *pixels)
{
    store_in_blocks(pixels, OWN);
}

#else

void ferrule_float_blocks_4(struct ferrule_float_pixels *pixels)
{
    store_plainly(pixels, 4);
}

void ferrule_float_blocks_8(struct ferrule_float_pixels *pixels)
{
    store_plainly(pixels, 8);
}

void ferrule_float_channels_8(struct ferrule_float_pixels *pixels)
{
    store_channels_plainly(pixels);
}

#endif
