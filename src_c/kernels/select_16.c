/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL  ferrule_select_16
#define FERRULE_ELEMENT uint16_t
#include "ferrule/kernels/select.inc.h"
