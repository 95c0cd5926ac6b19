/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Products of rows of int8 data with weights, four channels and two pixels at a time (MVE).
 */
#ifndef FERRULE_KERNELS_MVE_PIXELS_H_INCLUDED
#define FERRULE_KERNELS_MVE_PIXELS_H_INCLUDED

#include "ferrule/kernels/mve.h"

/** How a block of four channels is stored; the bits are combined. */
enum {
    FERRULE_MVE_GENERAL =
        1,                 /**< any zero point and limits; without it, those of ferrule_is_plain */
    FERRULE_MVE_LISTED = 2 /**< to listed channels of a pixel; without it, to the next four */
};

/** Weights and scales of an output. */
struct ferrule_mve_weights {
    /**
     * Per four channels: four biases (with the contribution of the input's zero point); per 16
     * products the weights of each channel, 16 bytes; four multipliers; four shifts as bytes,
     * negative to the right; for listed channels, their indices as halfwords.
     */
    const int32_t *stream;
    int32_t words;       /**< of the stream */
    int32_t vectors;     /**< products of a channel, in 16s */
    int32_t kind;        /**< FERRULE_MVE_GENERAL and FERRULE_MVE_LISTED */
    const int8_t *fixed; /**< one output pixel, used for the channels that are not listed; null if
                            all are */
    int32_t output_c;
    struct ferrule_output_s8 output;
};

/** Pixels in pairs, and what the assembler needs. */
struct ferrule_mve_pixels {
    const int32_t *stream;
    const int32_t *stream_end;
    const int8_t *rows; /**< 16 * vectors bytes are read for each pixel */
    int32_t row_bytes;  /**< from the row of a pixel to that of the next one */
    int8_t *output;
    int32_t pixel_bytes; /**< from an output pixel to the next one */
    int32_t pairs;       /**< at least 1 */
    int32_t first;       /**< vectors of the first pass: 1 to 8 */
    int32_t data_bytes;  /**< 16 * vectors */
    int32_t kind;
    int32_t zero_point;
    int32_t low;
    int32_t high;
    const int32_t *terms; /**< what each pixel's row adds to the sums of all channels; null means
                             nothing */
};

/** @brief Compute and store pairs of pixels. */
void ferrule_mve_store_pairs(const struct ferrule_mve_pixels *pixels);

/**
 * @brief Compute and store `count` pixels, at least 1, of rows that are `row_bytes` apart, with the
 * weights at `stream`. The output pixels are `pixel_bytes` apart.
 *
 * `terms` has what each row adds to its sums, and that of an odd last one twice; null means none.
 */
static inline void ferrule_mve_store_apart(const struct ferrule_mve_weights *weights,
                                           const int32_t *stream, const int8_t *rows,
                                           int32_t row_bytes, const int32_t *terms, int8_t *output,
                                           int32_t pixel_bytes, int32_t count)
{
    struct ferrule_mve_pixels pixels = {
        .stream = stream,
        .stream_end = stream + weights->words,
        .rows = rows,
        .row_bytes = row_bytes,
        .output = output,
        .pixel_bytes = pixel_bytes,
        .pairs = count / 2,
        .first = (weights->vectors - 1) % 8 + 1,
        .data_bytes = weights->vectors * FERRULE_MVE_BYTES,
        .kind = weights->kind,
        .zero_point = weights->output.zero_point,
        .low = weights->output.low,
        .high = weights->output.high,
        .terms = terms,
    };

    for (int32_t i = 0; weights->fixed != NULL && i < count; ++i) {
        ferrule_mve_copy(output + i * pixel_bytes, weights->fixed, weights->output_c);
    }
    if (count > 1) {
        ferrule_mve_store_pairs(&pixels);
    }
    if (count % 2 != 0) { /* the last pixel, as both of a pair */
        pixels.rows = rows + (count - 1) * row_bytes;
        pixels.row_bytes = 0;
        pixels.output = output + (count - 1) * pixel_bytes;
        pixels.pixel_bytes = 0;
        pixels.pairs = 1;
        pixels.terms = terms == NULL ? NULL : terms + count - 1;
        ferrule_mve_store_pairs(&pixels);
    }
}

/** @brief The same for neighbouring output pixels. */
static inline void ferrule_mve_store_rows(const struct ferrule_mve_weights *weights,
                                          const int8_t *rows, int32_t row_bytes,
                                          const int32_t *terms, int8_t *output, int32_t count)
{
    ferrule_mve_store_apart(weights, weights->stream, rows, row_bytes, terms, output,
                            weights->output_c, count);
}

/** @brief The same without terms. */
static inline void ferrule_mve_store_pixels(const struct ferrule_mve_weights *weights,
                                            const int8_t *rows, int32_t row_bytes, int8_t *output,
                                            int32_t count)
{
    ferrule_mve_store_rows(weights, rows, row_bytes, NULL, output, count);
}

#endif
