/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d.h"

#define FERRULE_KERNEL     ferrule_depthwise_conv2d_offset_s8
#define FERRULE_REQUANTIZE ferrule_requantize
#include "ferrule/kernels/depthwise_conv2d_offset_s8.inc.h"
