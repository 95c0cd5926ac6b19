/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_KERNEL       ferrule_svdf_block_s16_state
#define FERRULE_ENGINE(name) ferrule_block_##name
#define FERRULE_CHANNELS     FERRULE_BLOCK_CHANNELS
#define FERRULE_STATE        int16_t
#define FERRULE_PRODUCTS     "smlad r8, r9, r10, r8\n\t"
#define FERRULE_NEXT_BYTES   "16"
#define FERRULE_OTHERS       "2"
#define FERRULE_FRAME_BITS   "16"
#define FERRULE_OTHER_BITS   "16"
#include "ferrule/kernels/svdf_filters.inc.h"
