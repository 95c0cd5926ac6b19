/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#define FERRULE_STATE int8_t
#include "ferrule/kernels/svdf_tile.inc.h"

static void advance(const struct ferrule_svdf_tile *tile, int32_t *sums, int32_t filled)
{
    const int32_t filters = tile->units * tile->params->shape.rank;

    (void)filled;
    ferrule_newest_frames(tile->params, sums, filters);
    ferrule_advance_filters(tile, sums, filters);
    ferrule_store_units(tile, sums);
}

#define FERRULE_KERNEL       ferrule_svdf_octet_s8
#define FERRULE_ENGINE(name) ferrule_octet_##name
#define FERRULE_CHANNELS     FERRULE_OCTET_CHANNELS
#define FERRULE_NEWEST_BYTES 0
#include "ferrule/kernels/svdf_rows.inc.h"
