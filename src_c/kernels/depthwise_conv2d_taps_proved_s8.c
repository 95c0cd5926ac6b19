/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d.h"

#define FERRULE_KERNEL ferrule_depthwise_conv2d_taps_proved_s8
#define FERRULE_IS_PROVED
#include "ferrule/kernels/depthwise_conv2d_taps_s8.inc.h"
