/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/requantize_once.h"

#define FERRULE_KERNEL     ferrule_batch_matmul_single_s8
#define FERRULE_REQUANTIZE ferrule_requantize_single
#include "ferrule/kernels/batch_matmul_s8.inc.h"
