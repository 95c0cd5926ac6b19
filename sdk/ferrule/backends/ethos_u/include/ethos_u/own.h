/* SPDX-License-Identifier: Apache-2.0 */
/** @file Ferrule's own driver of Ethos-U55 and U65. */
#ifndef ETHOS_U_OWN_H
#define ETHOS_U_OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "ethos_u/ethos_u.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Number of reads of STATUS after which a reset has failed. */
#define ETHOS_U_RESET_READS 1000u

/** Number of spurious interrupts during one stream after which the driver stops using the
 * interrupt. */
#define ETHOS_U_SPURIOUS_MOST 100u

/** Number of attempts to clear an interrupt before the driver stops using it. */
#define ETHOS_U_CLEAR_TRIES 4u

/** One NPU; the context of its driver. The user sets the members up to `unprivileged`; the others
 * are private to the driver and start at zero. */
struct ethos_u {
    uintptr_t base;     /* address of the registers */
    uint32_t config;    /* what CONFIG must be in ETHOS_U_CONFIG_BITS; 0 for any */
    bool use_interrupt; /* wait for the interrupt instead of polling */
    bool nonsecure;     /* the NPU accesses memory as non-secure */
    bool unprivileged;  /* the NPU accesses memory as unprivileged */

    struct ethos_u_work work;     /* the one that runs */
    uint32_t command_bytes;       /* of the stream that runs */
    volatile uint32_t spurious;   /* spurious interrupts since the last stream began */
    volatile bool interrupt_lost; /* interrupt no longer used: the driver polls instead */
};

/**
 * @brief The handler of the NPU's interrupt.
 * @return true if the line is low again. If false, the caller must mask the interrupt, which would
 * otherwise recur endlessly; the driver polls from then on. The caller then calls
 * ferrule_device_notify(), which wakes the thread that waits.
 */
bool ethos_u_interrupt(struct ethos_u *device);

#ifdef __cplusplus
}
#endif

#endif /* ETHOS_U_OWN_H */
