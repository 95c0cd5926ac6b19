/* SPDX-License-Identifier: Apache-2.0 */
#include "accelerator.h"

static ARM_DRIVER_VERSION version(void)
{
    return (ARM_DRIVER_VERSION){.api = FERRULE_CMSIS_ACCELERATOR_API, .drv = 0};
}

static int32_t initialise(void (*on_event)(uint32_t event))
{
    (void)on_event;
    return ARM_DRIVER_OK;
}

static int32_t uninitialise(void)
{
    return ARM_DRIVER_OK;
}

static int32_t power(ARM_POWER_STATE state)
{
    (void)state;
    return ARM_DRIVER_OK;
}

static struct ferrule_cmsis_accelerator_status status(void)
{
    return (struct ferrule_cmsis_accelerator_status){0};
}

const struct ferrule_cmsis_accelerator test_accelerator = {
    .GetVersion = version,
    .Initialize = initialise,
    .Uninitialize = uninitialise,
    .PowerControl = power,
    .GetStatus = status,
};
