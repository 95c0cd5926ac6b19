/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_KERNEL  ferrule_copy_64
#define FERRULE_ELEMENT uint64_t
#include "ferrule/kernels/copy.inc.h"
