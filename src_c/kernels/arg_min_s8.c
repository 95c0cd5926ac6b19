/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL          ferrule_arg_min_s8
#define FERRULE_ELEMENT         int8_t
#define FERRULE_BETTER(x, best) ((x) < (best))
#include "ferrule/kernels/arg_select.inc.h"
