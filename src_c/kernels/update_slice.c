/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/gather.h"

void ferrule_update_slice(const struct ferrule_update_slice_params *params, const void *update,
                          const int32_t *starts, void *output)
{
    uint8_t *to = output;

    for (int32_t axis = 0; axis < params->axes; ++axis) {
        to += ferrule_index_within(starts[axis], params->limits[axis]) * params->strides[axis];
    }
    ferrule_copy_runs(&params->copy, update, to);
}
