/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL              ferrule_lstm_s8
#define FERRULE_PARAMS              ferrule_lstm_s8_params
#define FERRULE_ACTIVATION          int8_t
#define FERRULE_LEAST               INT8_MIN
#define FERRULE_MOST                INT8_MAX
#define FERRULE_SUM                 int32_t
#define FERRULE_SCALE               ferrule_requantize
#define FERRULE_OFFSET(params, row) ((params)->offset[row])
#include "ferrule/kernels/lstm.inc.h"
