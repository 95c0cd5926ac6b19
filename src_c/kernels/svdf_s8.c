/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL ferrule_svdf_s8
#define FERRULE_STATE  int8_t
#define FERRULE_LEAST  INT8_MIN
#define FERRULE_MOST   INT8_MAX
#include "ferrule/kernels/svdf.inc.h"
