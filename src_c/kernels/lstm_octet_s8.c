/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lstm_gates.h"

enum { FERRULE_MULTIPLE = 2 };

#define FERRULE_KERNEL       ferrule_lstm_octet_s8
#define FERRULE_ACTIVATION   int8_t
#define FERRULE_ENGINE(name) ferrule_octet_##name
#define FERRULE_CHANNELS     FERRULE_OCTET_CHANNELS
#define FERRULE_GATE_BYTES   0
#define FERRULE_ADVANCE      ferrule_lstm_tile
#include "ferrule/kernels/lstm_rows.inc.h"
