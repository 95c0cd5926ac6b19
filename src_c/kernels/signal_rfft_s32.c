/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL   ferrule_signal_rfft_s32
#define FERRULE_ELEMENT  int32_t
#define FERRULE_WIDE     int64_t
#define FERRULE_FRACTION 31
#include "ferrule/kernels/rfft.inc.h"
