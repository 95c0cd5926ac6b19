/* SPDX-License-Identifier: Apache-2.0 */
/** @file A driver under test: an accelerator that multiplies, with deliberate faults on request. */
#ifndef SCALER_H
#define SCALER_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/driver.h"

#define SCALER_TIMEOUT_US 100u
#define SCALER_BITS       (1u << 3 | 1u << 2)

enum scaler_register {
    SCALER_ID = 0x0,
    SCALER_CONTROL = 0x4,
    SCALER_STATUS = 0x8,
    SCALER_VALUE = 0xC
};

struct scaler {
    uintptr_t base;
    uint32_t served; /* number of interrupts served */
    bool at[2];
};

extern const struct ferrule_driver scaler_driver;

int32_t scaler_run(struct scaler *scaler, uint32_t value, uint32_t *result);
void scaler_isr(struct scaler *scaler);
int32_t scaler_read_past_end(uint32_t index);
int32_t scaler_overflow(int32_t value);

static inline uint32_t scaler_twice(uint32_t value)
{
    return 2u * value;
}

#endif /* SCALER_H */
