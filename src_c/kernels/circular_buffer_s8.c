/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/circular_buffer.h"

void ferrule_circular_buffer_s8(const struct ferrule_circular_buffer_params *params,
                                const int8_t *input, const int8_t *frames, int8_t *output,
                                int8_t *next)
{
    ferrule_append_frame(params, input, frames, output, next);
}
