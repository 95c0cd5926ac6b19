/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_KERNEL       ferrule_svdf_octet_s16_state
#define FERRULE_ENGINE(name) ferrule_octet_##name
#define FERRULE_CHANNELS     FERRULE_OCTET_CHANNELS
#define FERRULE_STATE        int16_t
#include "ferrule/kernels/svdf_filters.inc.h"
