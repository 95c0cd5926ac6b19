/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The steps of an LSTM with tiles of units. A kernel's source file defines these, then
 * includes this file, which removes the definitions of FERRULE_KERNEL, FERRULE_ACTIVATION,
 * FERRULE_ENGINE and FERRULE_ADVANCE:
 *
 * FERRULE_KERNEL        name of the kernel
 * FERRULE_ACTIVATION    element type of input, hidden state and output
 * FERRULE_ENGINE(name)  name of a function of row_matrix.h
 * FERRULE_CHANNELS      channels of a block
 * FERRULE_MULTIPLE      units of a tile are filled up to a multiple of this number
 * FERRULE_GATE_BYTES    scratch per gate of a unit, besides the sums
 * FERRULE_ADVANCE(params, units, filled, sums, cell, shown)  computes a tile from the sums over the
 *                       input and those over the hidden state behind them, 4 * tile each
 */
#include <string.h>

void FERRULE_KERNEL(const struct ferrule_lstm_rows_params *params, const FERRULE_ACTIVATION *input,
                    const FERRULE_ACTIVATION *hidden, const int16_t *cell,
                    FERRULE_ACTIVATION *output, FERRULE_ACTIVATION *next_hidden, int16_t *next_cell,
                    void *scratch)
{
    const struct ferrule_lstm_shape *shape = &params->shape;
    int32_t *given_sums = (int32_t *)scratch;
    int32_t *kept_sums = given_sums + FERRULE_LSTM_GATES * params->tile;
    int8_t *input_copy = (int8_t *)(void *)(kept_sums + FERRULE_LSTM_GATES * params->tile) +
                         FERRULE_GATE_BYTES * FERRULE_LSTM_GATES * params->tile;
    int8_t *hidden_copy = input_copy + FERRULE_ENGINE(row_bytes)(&params->input, shape->inputs);

    /* Old and new states usually are at the same place. */
    for (int32_t i = 0; next_hidden != hidden && i < shape->batches * shape->units; ++i) {
        next_hidden[i] = hidden[i];
    }
    for (int32_t i = 0; next_cell != cell && i < shape->batches * shape->units; ++i) {
        next_cell[i] = cell[i];
    }
    for (int32_t b = 0; b < shape->batches; ++b) {
        const FERRULE_ACTIVATION *old = next_hidden;

        for (int32_t t = 0; t < shape->steps; ++t) {
            const int32_t row = b * shape->batch_rows + t * shape->step_rows;
            FERRULE_ACTIVATION *shown = &output[row * shape->units];
            const void *given = FERRULE_ENGINE(prepared)(
                &params->input, &input[row * shape->inputs], shape->inputs, input_copy);
            const void *kept =
                FERRULE_ENGINE(prepared)(&params->recurrent, old, shape->units, hidden_copy);
            const int32_t *given_stream = params->input.stream;
            const int32_t *kept_stream = params->recurrent.stream;

            for (int32_t u = 0; u < shape->units; u += params->tile) {
                const int32_t left = shape->units - u;
                const int32_t units = left < params->tile ? left : params->tile;
                const int32_t filled =
                    (units + FERRULE_MULTIPLE - 1) / FERRULE_MULTIPLE * FERRULE_MULTIPLE;
                const int32_t blocks = filled * FERRULE_LSTM_GATES / FERRULE_CHANNELS;

                given_stream =
                    FERRULE_ENGINE(sums)(&params->input, given, given_stream, blocks, given_sums);
                kept_stream =
                    FERRULE_ENGINE(sums)(&params->recurrent, kept, kept_stream, blocks, kept_sums);
                FERRULE_ADVANCE(params, units, filled, given_sums, &next_cell[u], &shown[u]);
            }
            old = shown;
        }
        (void)memcpy(next_hidden, old, (size_t)shape->units * sizeof(FERRULE_ACTIVATION));
        next_hidden += shape->units;
        next_cell += shape->units;
    }
}

#undef FERRULE_KERNEL
#undef FERRULE_ACTIVATION
#undef FERRULE_ENGINE
#undef FERRULE_ADVANCE
