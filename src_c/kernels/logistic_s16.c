/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL       ferrule_logistic_s16
#define FERRULE_BITS         9
#define FERRULE_SHIFT        10
#define FERRULE_MIDDLE       16384
#define FERRULE_VECTOR_SLOPE "vmulh.u16 q3, q3, q7\n\t"
#define FERRULE_VECTOR_SUM   "vrhadd.s16 q1, q1, q3\n\t"
#include "ferrule/kernels/sigmoidal_s16.inc.h"
