/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/columns.h"

#define FERRULE_KERNEL           ferrule_depthwise_conv2d_columns_onnx_s8
#define FERRULE_STORE_SUMS       ferrule_store_sums_onnx
#define FERRULE_STORE_SUMS_PLAIN ferrule_store_sums_plain_onnx
#define FERRULE_IS_PLAIN         ferrule_is_whole_s8
#include "ferrule/kernels/depthwise_conv2d_columns_s8.inc.h"
