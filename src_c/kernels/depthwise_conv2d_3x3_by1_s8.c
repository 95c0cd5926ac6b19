/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL   ferrule_depthwise_conv2d_3x3_by1_s8
#define FERRULE_STRIDE   1
#define FERRULE_IS_EXACT 0
#include "ferrule/kernels/depthwise_3x3_s8.inc.h"
