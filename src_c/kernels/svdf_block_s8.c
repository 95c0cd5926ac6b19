/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_KERNEL       ferrule_svdf_block_s8
#define FERRULE_ENGINE(name) ferrule_block_##name
#define FERRULE_CHANNELS     FERRULE_BLOCK_CHANNELS
#define FERRULE_STATE        int8_t
#define FERRULE_PRODUCTS                                                                           \
    "sxtb16 r11, r9\n\t"                                                                           \
    "sxtb16 r12, r10\n\t"                                                                          \
    "smlad r8, r11, r12, r8\n\t"                                                                   \
    "sxtb16 r11, r9, ror #8\n\t"                                                                   \
    "sxtb16 r12, r10, ror #8\n\t"                                                                  \
    "smlad r8, r11, r12, r8\n\t"
#define FERRULE_NEXT_BYTES "36"
#define FERRULE_OTHERS     "3"
#define FERRULE_FRAME_BITS "8"
#define FERRULE_OTHER_BITS "24"
#include "ferrule/kernels/svdf_filters.inc.h"
