/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

#define FERRULE_KERNEL   ferrule_conv2d_duo_s8
#define FERRULE_STORE    ferrule_store_plain
#define FERRULE_IS_PLAIN ferrule_is_plain
#include "ferrule/kernels/conv2d_duo_s8.inc.h"
