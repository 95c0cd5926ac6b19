/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"

#define FERRULE_KERNEL   ferrule_conv2d_1x1_paired_s8
#define FERRULE_STORE    ferrule_store_s8
#define FERRULE_IS_PLAIN ferrule_is_plain
#include "ferrule/kernels/conv2d_1x1_paired_s8.inc.h"
