/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_window.h"

#define FERRULE_KERNEL                    ferrule_multiply_words_by2
#define FERRULE_HOP                       2
#define FERRULE_HAS_THUMB2_WINDOW         FERRULE_HAS_THUMB2
#define FERRULE_HAS_THUMB1_WINDOW         FERRULE_HAS_THUMB1
#define FERRULE_MULTIPLY_ADD              "mla"
#define FERRULE_ADDED(data, weights, sum) ((sum) + (data) * (weights))
#include "ferrule/kernels/multiply_window.inc.h"
