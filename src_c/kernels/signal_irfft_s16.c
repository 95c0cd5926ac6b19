/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL   ferrule_signal_irfft_s16
#define FERRULE_ELEMENT  int16_t
#define FERRULE_WIDE     int32_t
#define FERRULE_FRACTION 15
#include "ferrule/kernels/irfft.inc.h"
