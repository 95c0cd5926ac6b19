/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/add_n.h"

void ferrule_add_n_f32(const struct ferrule_add_n_f32_params *params, const float *first,
                       const float *second, float *output)
{
    const int32_t elements = params->elements;

    for (int32_t i = 0; i < elements; ++i) {
        output[i] = (0.0f + first[i]) + second[i]; /* the sum of -0 and -0 is 0 */
    }
}
