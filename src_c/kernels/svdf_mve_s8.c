/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_KERNEL ferrule_svdf_mve_s8
#define FERRULE_STATE  int8_t
/* Modulo the state's range, as in TensorFlow Lite Micro; q4 is the zero point. */
#define FERRULE_NEWEST(q, values)                                                                  \
    "vqmovnb.s16 " q ", " q "\n\t"                                                                 \
    "vadd.i8 " q ", " q ", q4\n\t"                                                                 \
    "vstrb.16 " q ", [" values "], #8\n\t"
#define FERRULE_SIZE  "b"
#define FERRULE_BITS  "8"
#define FERRULE_SCALE "0"
#include "ferrule/kernels/svdf_mve.inc.h"
