/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL  ferrule_select_64
#define FERRULE_ELEMENT uint64_t
#include "ferrule/kernels/select.inc.h"
