/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL  ferrule_average_pool2d_s8
#define FERRULE_ELEMENT int8_t
#include "ferrule/kernels/average_pool2d.inc.h"
