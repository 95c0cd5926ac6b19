/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL       ferrule_tanh_s16
#define FERRULE_BITS         8
#define FERRULE_SHIFT        8
#define FERRULE_MIDDLE       0
#define FERRULE_VECTOR_SLOPE "vrmulh.u16 q3, q3, q7\n\t"
#define FERRULE_VECTOR_SUM   "vadd.i16 q1, q1, q3\n\t"
#include "ferrule/kernels/sigmoidal_s16.inc.h"
