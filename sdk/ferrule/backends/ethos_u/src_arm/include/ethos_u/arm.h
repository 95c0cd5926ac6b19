/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file An Ethos-U behind Arm's own driver, the Ethos-U core driver, in the device API.
 *
 * Arm's sources are not part of Ferrule: the environment variable ETHOSU_DRIVER names a checkout,
 * and a firmware is built with its unmodified files. The functions that the driver asks of a system
 * (semaphores, mutexes, cache maintenance, addresses) are in src_arm/system.c. It never waits: the
 * device API does, with its time limit, before the driver takes a semaphore.
 */
#ifndef ETHOS_U_ARM_H
#define ETHOS_U_ARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ethos_u/ethos_u.h"
#include "ethosu_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Devices that one firmware can activate at the same time. */
#ifndef ETHOS_U_ARM_DEVICES
#define ETHOS_U_ARM_DEVICES 4u
#endif

/** Number of spurious interrupts during one command after which the driver stops using the
 * interrupt. */
#define ETHOS_U_ARM_SPURIOUS_MOST 100u

/** Number of attempts to clear an interrupt before the driver stops using it. */
#define ETHOS_U_ARM_CLEAR_TRIES 4u

/** One device; the context of ethos_u_driver. The user sets the members up to `unprivileged`; the
 * others are private to the driver and start at zero. */
struct ethos_u_arm {
    uintptr_t base;     /* address of the registers */
    bool use_interrupt; /* wait for the interrupt instead of polling */
    bool nonsecure;     /* the NPU accesses memory as non-secure */
    bool unprivileged;  /* the NPU accesses memory as unprivileged */

    struct ethosu_driver npu;     /* Arm's */
    struct ethos_u_work work;     /* in progress */
    bool is_ready;                /* `npu` is initialised */
    volatile bool interrupt_lost; /* interrupt no longer used: the driver polls instead */
    volatile uint32_t spurious;   /* spurious interrupts since the last command began */
    uint64_t regions[ETHOS_U_REGIONS];
    size_t region_bytes[ETHOS_U_REGIONS];
};

/**
 * @brief The handler of the device's interrupt.
 * @return true if the line is low again. If false, the caller must mask the interrupt, which would
 * otherwise recur endlessly; the driver polls from then on. The caller then calls
 * ferrule_device_notify(), which wakes the thread that waits.
 */
bool ethos_u_arm_interrupt(struct ethos_u_arm *device);

#ifdef __cplusplus
}
#endif

#endif /* ETHOS_U_ARM_H */
