/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL          ferrule_reduce_max_s8
#define FERRULE_ELEMENT         int8_t
#define FERRULE_START           INT8_MIN
#define FERRULE_BETTER(x, best) ((x) > (best))
#include "ferrule/kernels/reduce_select.inc.h"
