/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL              ferrule_conv2d_unpacked_s16
#define FERRULE_WHOLE               ferrule_conv2d_unpacked_whole_s16
#define FERRULE_GROUPS              ferrule_conv2d_unpacked_groups_s16
#define FERRULE_STORE(params, pair) ferrule_dual_pair_unpacked_s16(pair)
#define FERRULE_LONG                ferrule_dual_long_unpacked_s16
#include "ferrule/kernels/conv2d_dual_s16.inc.h"
