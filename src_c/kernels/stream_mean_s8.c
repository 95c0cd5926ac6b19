/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "ferrule/kernels/pool2d.h"
#include "ferrule/kernels/stream.h"

void ferrule_stream_mean_s8(const struct ferrule_stream_mean_s8_params *params, const int8_t *rows,
                            int8_t *output, void *sums)
{
    int32_t *sum = sums;

    if (params->first) {
        (void)memset(sum, 0, (size_t)params->channels * sizeof(*sum));
    }
    for (int32_t pixel = 0; pixel < params->pixels; ++pixel) {
        for (int32_t c = 0; c < params->channels; ++c) {
            sum[c] += rows[c];
        }
        rows += params->channels;
    }
    for (int32_t c = 0; params->last && c < params->channels; ++c) {
        const int32_t mean = ferrule_mean(sum[c], params->count);
        const int32_t raised = mean < params->low ? params->low : mean;

        output[c] = (int8_t)(raised > params->high ? params->high : raised);
    }
}
