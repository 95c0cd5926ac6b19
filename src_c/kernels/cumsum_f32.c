/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL       ferrule_cumsum_f32
#define FERRULE_PARAMS       ferrule_cumsum_f32_params
#define FERRULE_ELEMENT      float
#define FERRULE_SUM          float
#define FERRULE_FIRST        0.0f
#define FERRULE_NEXT(sum, x) ((sum) + (x))
#define FERRULE_RESULT(sum)  (sum)
#include "ferrule/kernels/cumsum.inc.h"
