/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL    ferrule_signal_overlap_add_f32
#define FERRULE_ELEMENT   float
#define FERRULE_SUM(a, b) ((a) + (b))
#include "ferrule/kernels/overlap_add.inc.h"
