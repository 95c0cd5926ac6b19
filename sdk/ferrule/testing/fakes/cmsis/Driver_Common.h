/* SPDX-License-Identifier: Apache-2.0 */
/** @file Definitions shared by all drivers of the CMSIS-Driver API, for the host. */
#ifndef FERRULE_FAKE_DRIVER_COMMON_H
#define FERRULE_FAKE_DRIVER_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARM_DRIVER_VERSION_MAJOR_MINOR(major, minor) (((major) << 8) | (minor))

typedef struct {
    uint16_t api;
    uint16_t drv;
} ARM_DRIVER_VERSION;

#define ARM_DRIVER_OK                0
#define ARM_DRIVER_ERROR             (-1)
#define ARM_DRIVER_ERROR_BUSY        (-2)
#define ARM_DRIVER_ERROR_TIMEOUT     (-3)
#define ARM_DRIVER_ERROR_UNSUPPORTED (-4)
#define ARM_DRIVER_ERROR_PARAMETER   (-5)
#define ARM_DRIVER_ERROR_SPECIFIC    (-6)

typedef enum { ARM_POWER_OFF, ARM_POWER_LOW, ARM_POWER_FULL } ARM_POWER_STATE;

#endif /* FERRULE_FAKE_DRIVER_COMMON_H */
