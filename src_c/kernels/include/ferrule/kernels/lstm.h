/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file LSTM over a sequence, without peepholes, projection and normalisation. Any context; the
 * kernels keep no state between calls: they get the old states and write the new ones, each of
 * which may lie over its old one, also partly if it starts below.
 *
 * Gates are in the order input, forget, cell, output.
 */
#ifndef FERRULE_KERNELS_LSTM_H_INCLUDED
#define FERRULE_KERNELS_LSTM_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/nonlinear.h"

enum {
    FERRULE_LSTM_GATES = 4,
    FERRULE_LSTM_BLOCK = 8, /**< sums in float32 at a time */
};

/** Extents; every one is positive. */
struct ferrule_lstm_shape {
    int32_t batches;
    int32_t steps;
    int32_t inputs;     /**< elements of an input row */
    int32_t units;      /**< elements of an output row */
    int32_t batch_rows; /**< rows from one batch to the next */
    int32_t step_rows;  /**< rows from one step to the next */
};

/** A factor, as in requantize.h. */
struct ferrule_lstm_factor {
    int32_t multiplier;
    int32_t shift;
};

/** The arithmetic between the sums; cells have int16 values. */
struct ferrule_lstm_scaling {
    struct ferrule_lstm_factor input[FERRULE_LSTM_GATES];     /**< from sums to Q3.12 */
    struct ferrule_lstm_factor recurrent[FERRULE_LSTM_GATES]; /**< from sums to Q3.12 */
    struct ferrule_lstm_factor forget; /**< from forget gate times cell to the cell */
    struct ferrule_lstm_factor update; /**< from input gate times cell gate to the cell */
    struct ferrule_lstm_factor hidden; /**< from output gate times the cell's tanh to the output */
    int32_t hidden_zero_point;
    int32_t cell_clip;                       /**< limit on the cell's magnitude; -1 for none */
    struct ferrule_sigmoid_s16_params gates; /**< of sums in Q3.12; `elements` is not read */
    struct ferrule_sigmoid_s16_params cell;  /**< of the cell; `elements` is not read */
};

struct ferrule_lstm_s8_params {
    struct ferrule_lstm_shape shape;
    const int8_t *weights;   /**< [4][units][inputs] */
    const int8_t *recurrent; /**< [4][units][units] */
    const int32_t *bias;     /**< [4][units], minus zero point times weights */
    const int32_t *offset;   /**< [4][units]: minus zero point times recurrent weights */
    struct ferrule_lstm_scaling scaling;
};

struct ferrule_lstm_s16_params {
    struct ferrule_lstm_shape shape;
    const int8_t *weights;   /**< as above */
    const int8_t *recurrent; /**< as above */
    const int64_t *bias;     /**< [4][units] */
    struct ferrule_lstm_scaling scaling;
};

struct ferrule_lstm_f32_params {
    struct ferrule_lstm_shape shape;
    const float *weights;   /**< of all gates and units, with the biases, in blocks as in
                               `ferrule/kernels/float_pixels.h` */
    const float *recurrent; /**< the same, the biases are 0 */
    float cell_clip;        /**< 0 for none */
};

/** @brief int8 activations. */
void ferrule_lstm_s8(const struct ferrule_lstm_s8_params *params, const int8_t *input,
                     const int8_t *hidden, const int16_t *cell, int8_t *output, int8_t *next_hidden,
                     int16_t *next_cell);

/** @brief int16 activations, zero points 0. */
void ferrule_lstm_s16(const struct ferrule_lstm_s16_params *params, const int16_t *input,
                      const int16_t *hidden, const int16_t *cell, int16_t *output,
                      int16_t *next_hidden, int16_t *next_cell);

/** @brief float32. Scratch, aligned to 4: 32 * units bytes. */
void ferrule_lstm_f32(const struct ferrule_lstm_f32_params *params, const float *input,
                      const float *hidden, const float *cell, float *output, float *next_hidden,
                      float *next_cell, void *scratch);

#endif
