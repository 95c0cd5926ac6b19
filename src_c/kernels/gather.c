/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/gather.h"

#include <string.h>

void ferrule_gather(const struct ferrule_gather_params *params, const void *input,
                    const int32_t *indices, void *output)
{
    const size_t run = (size_t)params->run;
    const uint8_t *block = input;
    uint8_t *to = output;

    for (int32_t batch = 0; batch < params->batches; ++batch) {
        for (int32_t outer = 0; outer < params->outer; ++outer) {
            const int32_t *index = indices;

            for (int32_t i = 0; i < params->count; ++i) {
                const uint8_t *from = block;

                for (int32_t axis = 0; axis < params->depth; ++axis) {
                    from +=
                        ferrule_index_within(*index, params->limits[axis]) * params->strides[axis];
                    ++index;
                }
                (void)memcpy(to, from, run);
                to += run;
            }
            block += params->block;
        }
        indices += params->count * params->depth;
    }
}
