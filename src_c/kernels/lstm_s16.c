/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL              ferrule_lstm_s16
#define FERRULE_PARAMS              ferrule_lstm_s16_params
#define FERRULE_ACTIVATION          int16_t
#define FERRULE_LEAST               INT16_MIN
#define FERRULE_MOST                INT16_MAX
#define FERRULE_SUM                 int64_t
#define FERRULE_SCALE               ferrule_requantize_wide
#define FERRULE_OFFSET(params, row) 0
#include "ferrule/kernels/lstm.inc.h"
