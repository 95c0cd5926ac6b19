/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL ferrule_svdf_s16_state
#define FERRULE_STATE  int16_t
#define FERRULE_LEAST  INT16_MIN
#define FERRULE_MOST   INT16_MAX
#include "ferrule/kernels/svdf.inc.h"
