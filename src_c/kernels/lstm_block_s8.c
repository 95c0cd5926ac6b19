/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lstm_gates.h"

enum { FERRULE_MULTIPLE = 1 };

#define FERRULE_KERNEL       ferrule_lstm_block_s8
#define FERRULE_ENGINE(name) ferrule_block_##name
#define FERRULE_CHANNELS     FERRULE_BLOCK_CHANNELS
#define FERRULE_GATE_BYTES   0
#define advance              ferrule_lstm_tile
#include "ferrule/kernels/lstm_rows.inc.h"
