/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>

#define FERRULE_KERNEL          ferrule_reduce_min_f32
#define FERRULE_ELEMENT         float
#define FERRULE_START           FLT_MAX
#define FERRULE_BETTER(x, best) ((x) < (best))
#include "ferrule/kernels/reduce_select.inc.h"
