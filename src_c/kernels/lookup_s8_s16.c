/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lookup.h"

#define FERRULE_KERNEL ferrule_lookup_s8_s16
#define FERRULE_PARAMS ferrule_lookup_s8_s16_params
#define FERRULE_OUTPUT int16_t
#include "ferrule/kernels/lookup.inc.h"
