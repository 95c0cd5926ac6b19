/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/batch_matmul.h"

#define FERRULE_KERNEL     ferrule_batch_matmul_s8
#define FERRULE_REQUANTIZE ferrule_requantize
#include "ferrule/kernels/batch_matmul_s8.inc.h"
