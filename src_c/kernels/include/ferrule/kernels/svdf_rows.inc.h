/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The steps of SVDF of int8 with tiles of units. A kernel's source file defines these, then
 * includes this file:
 *
 * FERRULE_KERNEL        name of the kernel
 * FERRULE_ENGINE(name)  name of a function of row_matrix.h
 * FERRULE_CHANNELS      channels of a block
 * FERRULE_STATE         element type of the state
 * FERRULE_NEWEST_BYTES  scratch per filter, besides its sum
 * advance(tile, sums, filled)  computes a tile from the sums of its filters
 */

void FERRULE_KERNEL(const struct ferrule_svdf_rows_params *params, const int8_t *input,
                    const FERRULE_STATE *state, int8_t *output, FERRULE_STATE *next, void *scratch)
{
    const struct ferrule_svdf_shape *shape = &params->shape;
    const int32_t most =
        (params->tile * shape->rank + FERRULE_CHANNELS - 1) / FERRULE_CHANNELS * FERRULE_CHANNELS;
    int32_t *sums = (int32_t *)scratch;
    int8_t *copy = (int8_t *)(void *)(sums + most) + FERRULE_NEWEST_BYTES * most;

    for (int32_t b = 0; b < shape->batches; ++b) {
        const void *row = FERRULE_ENGINE(prepared)(&params->feature, input, shape->features, copy);
        const int32_t *stream = params->feature.stream;
        struct ferrule_svdf_tile tile = {
            .params = params,
            .units = params->tile,
            .weights = (const FERRULE_STATE *)params->time_weights,
            .bias = params->bias,
            .state = state,
            .next = next,
            .output = output,
        };

        for (int32_t u = 0; u < shape->units; u += params->tile) {
            if (tile.units > shape->units - u) {
                tile.units = shape->units - u;
            }
            const int32_t filters = tile.units * shape->rank;
            const int32_t blocks = (filters + FERRULE_CHANNELS - 1) / FERRULE_CHANNELS;

            stream = FERRULE_ENGINE(sums)(&params->feature, row, stream, blocks, sums);
            advance(&tile, sums, blocks * FERRULE_CHANNELS);
            tile.weights += filters * shape->memory;
            tile.bias += tile.units;
            tile.state += filters * shape->memory;
            tile.next += filters * shape->memory;
            tile.output += tile.units;
        }
        input += shape->features;
        state = tile.state;
        next = tile.next;
        output = tile.output;
    }
}
