/* SPDX-License-Identifier: Apache-2.0 */
#include "npu.h"

#include "ferrule/device.h"
#include "ferrule/port.h"

enum { ID = 0x00, STATUS = 0x04, A = 0x08, B = 0x0C, SUM = 0x10 };
enum { IDENTITY = 0xADD, DONE = 1, PATIENCE = 1000 };

static int32_t activate(void *context)
{
    const struct npu *npu = context;
    return ferrule_mmio_read32(npu->base + ID) == IDENTITY ? FERRULE_OK : FERRULE_ERR_DEVICE;
}

const struct ferrule_driver npu_driver = {.name = "npu", .is_passive = true, .activate = activate};

int32_t npu_add(void *resource_handle, uint32_t a, uint32_t b, uint32_t *sum)
{
    void *context = NULL;
    const int32_t status = ferrule_device_context(resource_handle, &npu_driver, &context);
    if (status != FERRULE_OK) {
        return status;
    }
    const struct npu *npu = context;
    ferrule_mmio_write32(npu->base + A, a);
    ferrule_mmio_write32(npu->base + B, b); /* starts the addition */
    for (int tries = 0; tries < PATIENCE; tries++) {
        if (ferrule_mmio_read32(npu->base + STATUS) == DONE) {
            *sum = ferrule_mmio_read32(npu->base + SUM);
            return FERRULE_OK;
        }
    }
    return FERRULE_ERR_TIMEOUT;
}
