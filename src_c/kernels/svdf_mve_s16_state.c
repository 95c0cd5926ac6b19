/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_KERNEL            ferrule_svdf_mve_s16_state
#define FERRULE_STATE             int16_t
#define FERRULE_NEWEST(q, values) "vstrh.16 " q ", [" values "], #16\n\t"
#define FERRULE_SIZE              "h"
#define FERRULE_BITS              "16"
#define FERRULE_SCALE             "1"
#include "ferrule/kernels/svdf_mve.inc.h"
