/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL   ferrule_depthwise_conv2d_3x3_by2_s8
#define FERRULE_IS_EXACT 0
#include "ferrule/kernels/depthwise_conv2d_3x3_by2_s8.inc.h"
