/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL  ferrule_signal_irfft_f32
#define FERRULE_ELEMENT float
#define FERRULE_WIDE    float
#include "ferrule/kernels/irfft.inc.h"
