/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL        ferrule_batch_matmul_f32
#define FERRULE_PARAMS        ferrule_batch_matmul_f32_params
#define FERRULE_ELEMENT       float
#define FERRULE_SUM           float
#define FERRULE_PRODUCT(a, b) ((a) * (b))
#define FERRULE_RESULT(sum)   (sum)
#include "ferrule/kernels/batch_matmul.inc.h"
