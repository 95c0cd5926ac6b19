/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of an LSTM's gates, and its cells, from twice the sums of a tile; internal to the
 * kernels. */
#ifndef FERRULE_KERNELS_LSTM_GATES_H
#define FERRULE_KERNELS_LSTM_GATES_H

#include "ferrule/kernels/lstm_rows.h"
#include "ferrule/kernels/scaled_s16.h"
#include "ferrule/kernels/sigmoid.h"

/* The table at a magnitude of 2^bits steps per entry, times 2^bits, plus `start`. */
static inline int32_t ferrule_lstm_between(const int16_t *table, int32_t magnitude, int32_t bits,
                                           int32_t start)
{
    const int32_t fraction = magnitude & ((1 << bits) - 1);
#if FERRULE_HAS_DSP
    const uint32_t entries = ferrule_load_word((const int8_t *)&table[magnitude >> bits]);

    return (int32_t)ferrule_dual_multiply_add(
        entries, ferrule_pair((1 << bits) - fraction, fraction), (uint32_t)start);
#else
    const int16_t *entry = &table[magnitude >> bits];

    return ((int32_t)entry[0] << bits) + fraction * (entry[1] - entry[0]) + start;
#endif
}

/* ferrule_logistic_element for a position whose entry is below 255. The complement of a value is
 * one less than its negative, as the rounding of values below zero requires. */
static inline int32_t ferrule_lstm_logistic(const int16_t *table, int32_t position)
{
    const int32_t sign = -(int32_t)(position < 0);
    const int32_t value = ferrule_lstm_between(table, (position ^ sign) - sign, 9, 0);

    return ((value ^ sign) + (1 << 24) + (1 << 9)) >> 10;
}

/* ferrule_tanh_element. */
static inline int32_t ferrule_lstm_tanh(const int16_t *table, int32_t position)
{
    const int32_t sign = -(int32_t)(position < 0);
    const int32_t magnitude = (position ^ sign) - sign;
    int32_t value = INT16_MAX << 8;

    if (magnitude < 255 << 8) {
        value = ferrule_lstm_between(table, magnitude, 8, 0);
    }
    return ((value ^ sign) + (1 << 7)) >> 8;
}

/* Replaces the sums over the input by values of the gate. */
static inline void ferrule_lstm_gate(const struct ferrule_lstm_scaling *scaling, int32_t gate,
                                     int32_t units, int32_t *given, const int32_t *kept)
{
    const struct ferrule_lstm_factor input = scaling->input[gate];
    const struct ferrule_lstm_factor recurrent = scaling->recurrent[gate];
    const int16_t *table = scaling->gates.table;

    if (input.shift >= 0 || recurrent.shift >= 0) {
        for (int32_t u = 0; u < units; ++u) {
            const int32_t x = ferrule_saturate_s16(
                ferrule_scaled_s16(given[u], input.multiplier, input.shift, input.shift < 0) +
                ferrule_scaled_s16(kept[u], recurrent.multiplier, recurrent.shift,
                                   recurrent.shift < 0));

            given[u] =
                gate == 2 ? ferrule_lstm_tanh(table, 3 * x) : ferrule_lstm_logistic(table, 3 * x);
        }
    } else if (gate == 2) {
        for (int32_t u = 0; u < units; ++u) {
            const int32_t x = ferrule_saturate_s16(
                ferrule_scaled_s16(given[u], input.multiplier, input.shift, true) +
                ferrule_scaled_s16(kept[u], recurrent.multiplier, recurrent.shift, true));

            given[u] = ferrule_lstm_tanh(table, 3 * x);
        }
    } else {
        for (int32_t u = 0; u < units; ++u) {
            const int32_t x = ferrule_saturate_s16(
                ferrule_scaled_s16(given[u], input.multiplier, input.shift, true) +
                ferrule_scaled_s16(kept[u], recurrent.multiplier, recurrent.shift, true));

            given[u] = ferrule_lstm_logistic(table, 3 * x);
        }
    }
}

/* Advances the cells from the values of the gates, `step` apart; the hidden state is int16 if it is
 * `wide`. */
static inline __attribute__((always_inline)) void
ferrule_lstm_cells(const struct ferrule_lstm_scaling *scaling, int32_t units, const int32_t *gates,
                   int32_t step, int16_t *cells, void *shown, bool wide)
{
    const int32_t low = scaling->cell_clip < 0 ? INT16_MIN : -scaling->cell_clip;
    const int32_t high = scaling->cell_clip < 0 ? INT16_MAX : scaling->cell_clip;
    const int32_t rounding = (int32_t)(((uint32_t)1 << scaling->cell.shift) >> 1);
    /* The multipliers of `forget` and `update` are 2^30: half, then the shift. */
    const int32_t forget = -1 - scaling->forget.shift;
    const int32_t update = -1 - scaling->update.shift;
    const struct ferrule_lstm_factor hidden = scaling->hidden;

    for (int32_t u = 0; u < units; ++u) {
        const int32_t *gate = &gates[u];
        const int32_t kept = ferrule_divided_s16((gate[step] * cells[u] + 1) >> 1, forget);
        const int32_t taken = ferrule_divided_s16((gate[0] * gate[2 * step] + 1) >> 1, update);
        const int32_t cell = ferrule_clamp(ferrule_saturate_s16(kept + taken), low, high);
        int32_t value =
            ferrule_lstm_tanh(scaling->cell.table,
                              (cell * scaling->cell.multiplier + rounding) >> scaling->cell.shift);

        cells[u] = (int16_t)cell;
        value =
            ferrule_scaled_s16(2 * (value * gate[3 * step]), hidden.multiplier, hidden.shift, true);
        if (wide) {
            ((int16_t *)shown)[u] = (int16_t)value;
        } else {
            ((int8_t *)shown)[u] = (int8_t)ferrule_saturate_s8(value + scaling->hidden_zero_point);
        }
    }
}

static inline void ferrule_lstm_gates(const struct ferrule_lstm_rows_params *params, int32_t units,
                                      int32_t filled, int32_t *sums)
{
    const int32_t *kept = sums + FERRULE_LSTM_GATES * params->tile;

    for (int32_t gate = 0; gate < FERRULE_LSTM_GATES; ++gate) {
        ferrule_lstm_gate(&params->scaling, gate, units, &sums[gate * filled],
                          &kept[gate * filled]);
    }
}

/* Computes a tile from the sums over the input and those over the hidden state, each gate's
 * `filled` apart. */
static inline void ferrule_lstm_tile(const struct ferrule_lstm_rows_params *params, int32_t units,
                                     int32_t filled, int32_t *sums, int16_t *cells, int8_t *shown)
{
    ferrule_lstm_gates(params, units, filled, sums);
    ferrule_lstm_cells(&params->scaling, units, sums, filled, cells, shown, false);
}

/* The same for int16. */
static inline void ferrule_lstm_tile_s16(const struct ferrule_lstm_rows_params *params,
                                         int32_t units, int32_t filled, int32_t *sums,
                                         int16_t *cells, int16_t *shown)
{
    ferrule_lstm_gates(params, units, filled, sums);
    ferrule_lstm_cells(&params->scaling, units, sums, filled, cells, shown, true);
}

#endif
