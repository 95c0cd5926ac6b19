/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/float_pair.h"

#define FERRULE_KERNEL ferrule_real_product_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_float_pair_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_RESULT(x, y)                                                                       \
    ferrule_pair_stored(params, ferrule_first_real(params, x) * ferrule_second_real(params, y))
#include "ferrule/kernels/elementwise.inc.h"
