/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_LONG ferrule_dual_long_s16
#include "ferrule/kernels/dual_long_s16.inc.h"

void ferrule_fully_connected_dual_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                      const int16_t *input, int16_t *output)
{
    for (int32_t left = params->window.batches; left > 0; --left) {
        store_long(params, params->stream, input, output);
        input += params->window.input_c;
        output += params->output_c;
    }
}
