/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/circular_buffer.h"

void ferrule_circular_buffer_counted_s8(const struct ferrule_circular_buffer_params *params,
                                        const int8_t *input, const int8_t *frames,
                                        const int32_t *count, int8_t *output, int8_t *next,
                                        int32_t *next_count)
{
    int32_t runs = count[0] + 1;

    ferrule_append_frame(params, input, frames, output, next);
    next_count[0] = runs >= params->cycles ? 0 : runs;
}
