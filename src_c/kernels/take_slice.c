/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/gather.h"

void ferrule_take_slice(const struct ferrule_update_slice_params *params, const void *input,
                        const int32_t *starts, void *output)
{
    const uint8_t *from = input;

    for (int32_t axis = 0; axis < params->axes; ++axis) {
        from += ferrule_index_within(starts[axis], params->limits[axis]) * params->strides[axis];
    }
    ferrule_copy_runs(&params->copy, from, output);
}
