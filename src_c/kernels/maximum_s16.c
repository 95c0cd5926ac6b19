/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL  ferrule_maximum_s16
#define FERRULE_BETTER  >
#define FERRULE_WORDS   "%0, %2"
#define FERRULE_VECTORS "vmax.s16 q0, q0, q1\n\t"
#include "ferrule/kernels/extremum_s16.inc.h"
