/* SPDX-License-Identifier: Apache-2.0 */
#include "scaler.h"

#include "ferrule/port.h"
#include "ferrule/status.h"

enum { IDENTITY = 0x5CA1E, START = 1, DONE = 1 };

static int32_t activate(void *context)
{
    const struct scaler *scaler = context;
    return ferrule_mmio_read32(scaler->base + SCALER_ID) == IDENTITY ? FERRULE_OK
                                                                     : FERRULE_ERR_DEVICE;
}

const struct ferrule_driver scaler_driver = {
    .name = "scaler", .is_passive = true, .activate = activate};

int32_t scaler_run(struct scaler *scaler, uint32_t value, uint32_t *result)
{
    ferrule_mmio_write32(scaler->base + SCALER_VALUE, value);
    ferrule_mmio_write32(scaler->base + SCALER_CONTROL, START);
    for (uint32_t us = 0; us < SCALER_TIMEOUT_US; us++) {
        if (ferrule_mmio_read32(scaler->base + SCALER_STATUS) == DONE) {
            *result = ferrule_mmio_read32(scaler->base + SCALER_VALUE);
            return FERRULE_OK;
        }
    }
    return FERRULE_ERR_TIMEOUT;
}

void scaler_isr(struct scaler *scaler)
{
    scaler->served++;
    ferrule_mmio_write32(scaler->base + SCALER_STATUS, DONE);
}

int32_t scaler_read_past_end(uint32_t index)
{
    static const int32_t table[4] = {1, 2, 3, 4};
    const int32_t *volatile values = table;
    return values[index];
}

int32_t scaler_overflow(int32_t value)
{
    return value + 1;
}
