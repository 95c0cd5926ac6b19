/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d.h"
#include "ferrule/kernels/requantize_once.h"

#define FERRULE_KERNEL     ferrule_depthwise_conv2d_onnx_s8
#define FERRULE_REQUANTIZE ferrule_requantize_onnx
#include "ferrule/kernels/depthwise_conv2d_s8.inc.h"
