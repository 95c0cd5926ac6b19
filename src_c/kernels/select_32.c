/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL  ferrule_select_32
#define FERRULE_ELEMENT uint32_t
#include "ferrule/kernels/select.inc.h"
