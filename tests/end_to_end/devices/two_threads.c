/* SPDX-License-Identifier: Apache-2.0 */
/* The model `crossing` on two devices that several threads share. The test writes the included
 * contexts.h. */
#include "two_threads.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/platform/zephyr.h"
#include "ferrule_crossing.h"
#include "soft_npu/soft_npu.h"

#include "contexts.h"

static ferrule_device_t npu0;
static ferrule_device_t npu1;
static const struct ferrule_crossing_devices devices = {.npu0 = &npu0, .npu1 = &npu1};

int32_t shared_start(void)
{
    int32_t status = ferrule_device_init(&npu0);

    if (status == FERRULE_OK) {
        status = ferrule_device_bind_soft(&npu0, &soft_npu_driver, &npu0_context);
    }
    if (status == FERRULE_OK) {
        status = ferrule_device_init(&npu1);
    }
    if (status == FERRULE_OK) {
        status = ferrule_device_bind_soft(&npu1, &soft_npu_driver, &npu1_context);
    }
    return status;
}

int32_t shared_run(int32_t runs, const int8_t *x, const int8_t *h, const int8_t *late)
{
    _Alignas(FERRULE_CROSSING_SRAM_ALIGNMENT) uint8_t sram[FERRULE_CROSSING_SRAM_BYTES];
    int8_t own_h[144];
    int8_t own_late[5];
    const struct ferrule_crossing_inputs inputs = {x};
    const struct ferrule_crossing_outputs outputs = {own_h, own_late};
    const struct ferrule_crossing_memory memory = {sram, sizeof sram};

    for (int32_t run = 0; run < runs; run++) {
        const int32_t status = ferrule_crossing_run(&inputs, &outputs, &memory, &devices, NULL);
        if (status != FERRULE_OK) {
            return status;
        }
        if (memcmp(own_h, h, sizeof own_h) != 0 || memcmp(own_late, late, sizeof own_late) != 0) {
            return 1;
        }
    }
    return FERRULE_OK;
}

uint32_t shared_activations(void)
{
    return npu0.core.activations + npu1.core.activations;
}
