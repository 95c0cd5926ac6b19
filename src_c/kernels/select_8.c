/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL  ferrule_select_8
#define FERRULE_ELEMENT uint8_t
#include "ferrule/kernels/select.inc.h"
