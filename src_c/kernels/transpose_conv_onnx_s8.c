/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/requantize_once.h"
#include "ferrule/kernels/transpose_conv.h"

#define FERRULE_KERNEL     ferrule_transpose_conv_onnx_s8
#define FERRULE_REQUANTIZE ferrule_requantize_onnx
#include "ferrule/kernels/transpose_conv_s8.inc.h"
