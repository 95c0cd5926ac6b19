/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lookup.h"

#define FERRULE_KERNEL ferrule_lookup_s8_s32
#define FERRULE_PARAMS ferrule_lookup_s8_s32_params
#define FERRULE_OUTPUT int32_t
#include "ferrule/kernels/lookup.inc.h"
