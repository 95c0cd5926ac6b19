/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lookup.h"

#define FERRULE_KERNEL    ferrule_lookup_s8_s16
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_lookup_s8_s16_params
#define FERRULE_FIRST     int8_t
#define FERRULE_OUTPUT    int16_t
#define FERRULE_LOCALS    const int16_t *table = params->table + 128;
#define FERRULE_RESULT(x) table[x]
#include "ferrule/kernels/elementwise.inc.h"
