/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

#define FERRULE_KERNEL    ferrule_logical_not_bool
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_elementwise_unary_params
#define FERRULE_FIRST     bool
#define FERRULE_OUTPUT    bool
#define FERRULE_RESULT(x) (!(x))
#include "ferrule/kernels/elementwise.inc.h"
