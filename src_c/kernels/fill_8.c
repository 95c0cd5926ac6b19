/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/copy.h"

#include <string.h>

void ferrule_fill_8(const struct ferrule_fill_params *params, void *output)
{
    (void)memset(output, (int)(params->value & UINT8_MAX), (size_t)params->count);
}
