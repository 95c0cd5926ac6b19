/* SPDX-License-Identifier: Apache-2.0 */
/* A tile of SVDF from twice the sums of its filters, for FERRULE_STATE; internal to the kernels. */
#ifndef FERRULE_KERNELS_SVDF_TILE_H
#define FERRULE_KERNELS_SVDF_TILE_H

#include "ferrule/kernels/scaled_s16.h"
#include "ferrule/kernels/svdf_rows.h"

struct ferrule_svdf_tile {
    const struct ferrule_svdf_rows_params *params;
    int32_t units;
    const FERRULE_STATE *weights;
    const int32_t *bias;
    const FERRULE_STATE *state;
    FERRULE_STATE *next;
    int8_t *output;
};

static inline int32_t ferrule_saturate_state(int32_t value)
{
    return sizeof(FERRULE_STATE) == 1 ? ferrule_saturate_s8(value) : ferrule_saturate_s16(value);
}

/* Replaces twice the sums over features by the newest frames, which the state has modulo its range,
 * as in TensorFlow Lite Micro. */
static inline void ferrule_newest_frames(const struct ferrule_svdf_rows_params *params,
                                         int32_t *sums, int32_t filters)
{
    const int32_t multiplier = params->state_multiplier;
    const int32_t shift = params->state_shift;
    const int32_t zero_point = params->state_zero_point;

    if (shift < 0) {
        for (int32_t f = 0; f < filters; ++f) {
            const int32_t newest = ferrule_scaled_s16(sums[f], multiplier, shift, true);

            sums[f] = ferrule_saturate_state(newest) + zero_point;
        }
    } else {
        for (int32_t f = 0; f < filters; ++f) {
            const int32_t newest = ferrule_scaled_s16(sums[f], multiplier, shift, false);

            sums[f] = ferrule_saturate_state(newest) + zero_point;
        }
    }
}

/* Moves the frames of filters by one, appends the newest, and replaces these by the sums of the
 * products modulo 2^32. */
static inline void ferrule_advance_filters(const struct ferrule_svdf_tile *tile, int32_t *sums,
                                           int32_t filters)
{
    const int32_t last = tile->params->shape.memory - 1;
    const FERRULE_STATE *weights = tile->weights;
    const FERRULE_STATE *state = tile->state;
    FERRULE_STATE *next = tile->next;

    for (int32_t f = 0; f < filters; ++f) {
        uint32_t sum = 0;

        for (int32_t i = 0; i < last; ++i) {
            const int32_t frame = *++state;

            *next++ = (FERRULE_STATE)frame;
            sum += (uint32_t)(frame * *weights++);
        }
        *next = (FERRULE_STATE)sums[f];
        sums[f] = (int32_t)(sum + (uint32_t)(*next++ * *weights++));
        ++state;
    }
}

/* Stores the units from the sums of their filters, in whose place are then those of the units. */
static inline void ferrule_store_units(const struct ferrule_svdf_tile *tile, int32_t *sums)
{
    const int32_t multiplier = tile->params->output_multiplier;
    const int32_t shift = tile->params->output_shift;
    const int32_t zero_point = tile->params->output_zero_point;
    const int32_t rank = tile->params->shape.rank;

    for (int32_t u = 0; u < tile->units; ++u) {
        sums[u] = ferrule_add_wrap(tile->bias[u], sums[u * rank]);
        for (int32_t r = 1; r < rank; ++r) {
            sums[u] = ferrule_add_wrap(sums[u], sums[u * rank + r]);
        }
    }
    if (tile->params->small_sums != 0) {
        for (int32_t u = 0; u < tile->units; ++u) {
            const int32_t value = ferrule_scaled_s16(2 * sums[u], multiplier, shift, true);

            tile->output[u] = (int8_t)ferrule_saturate_s8(value + zero_point);
        }
    } else {
        for (int32_t u = 0; u < tile->units; ++u) {
            const int32_t value = ferrule_requantize(sums[u], multiplier, shift);

            tile->output[u] = (int8_t)ferrule_saturate_s8(ferrule_add_wrap(value, zero_point));
        }
    }
}

#endif
