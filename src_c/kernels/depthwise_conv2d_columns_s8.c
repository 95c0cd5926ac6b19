/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/columns.h"

#define FERRULE_KERNEL           ferrule_depthwise_conv2d_columns_s8
#define FERRULE_STORE_SUMS       ferrule_store_sums
#define FERRULE_STORE_SUMS_PLAIN ferrule_store_sums_plain
#define FERRULE_IS_PLAIN         ferrule_is_plain
#include "ferrule/kernels/depthwise_conv2d_columns_s8.inc.h"
