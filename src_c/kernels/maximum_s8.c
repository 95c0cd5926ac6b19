/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL      ferrule_maximum_s8
#define FERRULE_BETTER      >
#define FERRULE_WORDS(a, b) ferrule_larger_bytes(a, b)
#define FERRULE_VECTORS     "vmax.s8 q0, q0, q1\n\t"
#include "ferrule/kernels/extremum_s8.inc.h"
