/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_KERNEL  ferrule_copy_32
#define FERRULE_ELEMENT uint32_t
#include "ferrule/kernels/copy.inc.h"
