/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL          ferrule_arg_max_f32
#define FERRULE_ELEMENT         float
#define FERRULE_BETTER(x, best) ((x) > (best))
#include "ferrule/kernels/arg_select.inc.h"
