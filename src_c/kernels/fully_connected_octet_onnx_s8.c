/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

#define FERRULE_KERNEL   ferrule_fully_connected_octet_onnx_s8
#define FERRULE_STORE    ferrule_store_plain_onnx
#define FERRULE_IS_PLAIN ferrule_is_whole_s8
#include "ferrule/kernels/fully_connected_octet_s8.inc.h"
