/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Products of rows of int16 data with int8 weights, four channels at a time (MVE).
 *
 * Sums have 32 bits for pairs of pixels, and 64 bits for single ones.
 */
#ifndef FERRULE_KERNELS_MVE_PIXELS_S16_H_INCLUDED
#define FERRULE_KERNELS_MVE_PIXELS_S16_H_INCLUDED

#include "ferrule/kernels/mve.h"

enum { FERRULE_MVE_HALVES = 8 /**< of 16 bits in a vector */ };

/** How the sums of an output are kept and rounded. */
enum {
    FERRULE_MVE_ONCE = 0,  /**< 32 bits; rounded once, by a multiplier that includes the shift */
    FERRULE_MVE_TWICE = 1, /**< 32 bits; rounded twice; right shifts of at least 1 */
    FERRULE_MVE_WIDE = 2   /**< 64 bits, as ferrule_requantize_wide */
};

/** Weights and scales of an output. */
struct ferrule_mve_weights_s16 {
    /**
     * Per four channels: four biases, of 64 bits for wide sums; per 8 products the weights of each
     * channel, 8 bytes; four multipliers; four shifts as words, negative to the right, unless sums
     * are rounded once. The channels and products that do not exist have weights of 0.
     */
    const int32_t *stream;
    int32_t sums; /**< FERRULE_MVE_ONCE, FERRULE_MVE_TWICE or FERRULE_MVE_WIDE */
    int32_t products;
    int32_t output_c;
    int32_t low;
    int32_t high;
};

/** Pixels in pairs, as the assembler needs them. */
struct ferrule_mve_pairs_s16 {
    const int32_t *stream;
    int32_t output_c;
    const int8_t *rows;
    int32_t row_bytes;
    int16_t *output;
    int32_t pixel_bytes;
    int32_t pairs; /**< at least 1 */
    int32_t first; /**< vectors of the first pass: 1 to 8 */
    int32_t data_bytes;
    int32_t sums;
    int32_t low;
    int32_t high;
};

/** @brief Compute and store pairs of pixels; whole vectors of their rows are read. */
void ferrule_mve_store_pairs_s16(const struct ferrule_mve_pairs_s16 *pairs);

/** @brief Add up the wide sums of four channels; return the address behind their weights. */
const int32_t *ferrule_mve_sum_wide_s16(const int32_t *stream, const int16_t *row, int32_t products,
                                        int64_t *sums);

/** @brief Compute and store one pixel with wide sums; only the row's elements are read. */
static inline void ferrule_mve_store_wide_s16(const struct ferrule_mve_weights_s16 *weights,
                                              const int16_t *row, int16_t *output)
{
    const int32_t *stream = weights->stream;

    for (int32_t left = weights->output_c; left > 0; left -= FERRULE_MVE_LANES) {
        int32_t channels = left < FERRULE_MVE_LANES ? left : FERRULE_MVE_LANES;
        int64_t sums[FERRULE_MVE_LANES];

        stream = ferrule_mve_sum_wide_s16(stream, row, weights->products, sums);
        for (int32_t c = 0; c < channels; ++c) {
            int32_t value =
                ferrule_requantize_wide(sums[c], stream[c], stream[FERRULE_MVE_LANES + c]);

            *output++ = (int16_t)ferrule_clamp(value, weights->low, weights->high);
        }
        stream += 2 * FERRULE_MVE_LANES;
    }
}

/** @brief Compute and store `count` pixels, at least 1, of rows that are `row_bytes` apart. */
static inline void ferrule_mve_store_s16(const struct ferrule_mve_weights_s16 *weights,
                                         const int8_t *rows, int32_t row_bytes, int16_t *output,
                                         int32_t count)
{
    int32_t vectors = (weights->products + FERRULE_MVE_HALVES - 1) / FERRULE_MVE_HALVES;
    struct ferrule_mve_pairs_s16 pairs = {
        .stream = weights->stream,
        .output_c = weights->output_c,
        .rows = rows,
        .row_bytes = row_bytes,
        .output = output,
        .pixel_bytes = 2 * weights->output_c,
        .pairs = count / 2,
        .first = (vectors - 1) % 8 + 1,
        .data_bytes = FERRULE_MVE_BYTES * vectors,
        .sums = weights->sums,
        .low = weights->low,
        .high = weights->high,
    };

    if (weights->sums == FERRULE_MVE_WIDE) {
        for (; count > 0; --count) {
            ferrule_mve_store_wide_s16(weights, (const int16_t *)(const void *)rows, output);
            rows += row_bytes;
            output += weights->output_c;
        }
        return;
    }
    if (count > 1) {
        ferrule_mve_store_pairs_s16(&pairs);
    }
    if (count % 2 != 0) { /* the last pixel, as both of a pair */
        pairs.rows = rows + (count - 1) * row_bytes;
        pairs.row_bytes = 0;
        pairs.output = output + (count - 1) * weights->output_c;
        pairs.pixel_bytes = 0;
        pairs.pairs = 1;
        ferrule_mve_store_pairs_s16(&pairs);
    }
}

#endif
