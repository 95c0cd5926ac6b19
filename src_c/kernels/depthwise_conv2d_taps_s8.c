/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d.h"

#define FERRULE_KERNEL   ferrule_depthwise_conv2d_taps_s8
#define FERRULE_STORE    ferrule_store_s8
#define FERRULE_IS_PLAIN ferrule_is_plain
#define FERRULE_ROUNDS_TWICE
#include "ferrule/kernels/depthwise_conv2d_taps_s8.inc.h"
