/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"
#include "ferrule/kernels/requantize_once.h"

#define FERRULE_KERNEL     ferrule_conv2d_offset_single_s8
#define FERRULE_REQUANTIZE ferrule_requantize_single
#include "ferrule/kernels/conv2d_offset_s8.inc.h"
