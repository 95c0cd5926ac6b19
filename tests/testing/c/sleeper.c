/* SPDX-License-Identifier: Apache-2.0 */
#include "sleeper.h"

#include "ferrule/port.h"
#include "ferrule/status.h"

static bool is_over(void *context)
{
    struct sleeper *sleeper = context;
    sleeper->looks++;
    return sleeper->over;
}

static uint32_t poll_us(void *context)
{
    (void)context;
    return FERRULE_WAIT_DEFAULT; /* the device interrupts */
}

static int32_t submit(void *context, const void *command)
{
    struct sleeper *sleeper = context;
    const uint32_t *value = command;
    sleeper->over = false;
    ferrule_mmio_write32(sleeper->base + SLEEPER_VALUE, *value);
    ferrule_mmio_write32(sleeper->base + SLEEPER_START, 1u);
    return FERRULE_OK;
}

static int32_t finish(void *context)
{
    const struct sleeper *sleeper = context;
    return ferrule_mmio_read32(sleeper->base + SLEEPER_START) == 0u ? FERRULE_OK
                                                                    : FERRULE_ERR_DEVICE;
}

static int32_t stop(void *context)
{
    const struct sleeper *sleeper = context;
    ferrule_mmio_write32(sleeper->base + SLEEPER_START, 0u);
    return FERRULE_OK;
}

const struct ferrule_driver sleeper_driver = {
    .name = "sleeper",
    .is_passive = true,
    .submit = submit,
    .is_over = is_over,
    .poll_us = poll_us,
    .finish = finish,
    .abort = stop,
    .timeout_us = 20000,
};

int32_t sleeper_run(ferrule_device_t *dev, uint32_t value, uint32_t *result)
{
    void *context = NULL;
    int32_t status = ferrule_device_context(dev, &sleeper_driver, &context);
    if (status != FERRULE_OK) {
        return status;
    }
    (void)submit(context, &value); /* always succeeds */
    status = ferrule_device_wait(dev, is_over, FERRULE_WAIT_DEFAULT);
    const struct sleeper *sleeper = context;
    *result = ferrule_mmio_read32(sleeper->base + SLEEPER_VALUE);
    return status;
}

void sleeper_isr(struct sleeper *sleeper)
{
    ferrule_mmio_write32(sleeper->base + SLEEPER_DONE, 1u);
    sleeper->over = true;
}
