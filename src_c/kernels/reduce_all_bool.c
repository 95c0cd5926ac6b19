/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL          ferrule_reduce_all_bool
#define FERRULE_ELEMENT         bool
#define FERRULE_START           true
#define FERRULE_BETTER(x, best) (!(x))
#include "ferrule/kernels/reduce_select.inc.h"
