/* SPDX-License-Identifier: Apache-2.0 */
/** @file The driver of Woofles: an accelerator with registers, a command queue in memory, DMA and
 * an interrupt. */
#ifndef WOOFLES_WOOFLES_H
#define WOOFLES_WOOFLES_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/driver.h"
#include "woofles/command.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Commands that the ring holds; one place stays free. */
#define WOOFLES_RING 4u

/** Interrupts without a reason during one command, after which the interrupt is given up. */
#define WOOFLES_SPURIOUS_MOST 100u

/** Times that an interrupt is cleared before it is given up. */
#define WOOFLES_CLEAR_TRIES 4u

/** One device; the context of its driver. The user sets the first members, the others are the
 * driver's and begin as zeros. */
struct woofles {
    uintptr_t base; /* address of the registers */
    bool use_interrupt;
    /* may be NULL: called again and again while the driver waits for the interrupt, to let others
     * run or the core sleep; it must return at some time even if there is no interrupt */
    void (*idle)(void *idle_context);
    void *idle_context; /* argument of `idle` */

    bool is_set_up;               /* the last reset succeeded */
    uint32_t head;                /* index of the next free command in the ring */
    uint32_t sequence;            /* of the last command */
    uint32_t completed;           /* COMPLETED before the running command */
    volatile uint32_t interrupts; /* bits of INTERRUPT that woofles_interrupt() saw */
    volatile uint32_t spurious;   /* interrupts without a reason since the last command began */
    volatile bool interrupt_lost; /* it was given up: the driver polls from then on */
    struct woofles_command ring[WOOFLES_RING];
};

/** The part of a layer that is known beforehand. */
struct woofles_layer {
    struct woofles_command command; /* without sequence, addresses and checksum */
    const int8_t *weights;          /* NULL for ADD and MUL */
    const int32_t *bias;            /* may be NULL */
    const int32_t *multipliers;     /* per output channel; NULL for ADD and MUL */
    const int32_t *shifts;
    uint32_t patience; /* times that the driver looks whether it is done, before it gives up */
};

extern const struct ferrule_driver woofles_driver;

/**
 * @brief Run one layer and wait until it is done. For operators: the handle must be open.
 * @param resource_handle  the ferrule_device_t that woofles_driver is bound to
 * @param second           the other operand of ADD and MUL, NULL for layers with weights
 * @return as ferrule_device_context()
 * @retval FERRULE_ERR_ARGUMENT  or a pointer that is needed is null
 * @retval FERRULE_ERR_TIMEOUT   it was not done in time
 * @retval FERRULE_ERR_DEVICE    it says that it failed, or what it says does not fit together
 *
 * After an error the device was reset, and the output is not known. Where the reset failed, the
 * next ferrule_device_open() tries again and says how that ended.
 */
int32_t woofles_execute(void *resource_handle, const struct woofles_layer *layer,
                        const int8_t *input, const int8_t *second, int8_t *output);

/**
 * @brief The handler of the device's interrupt.
 * @return whether the line is low again. If not, the caller masks the interrupt, which would come
 * back at once for ever; the driver polls from then on.
 */
bool woofles_interrupt(struct woofles *device);

#ifdef __cplusplus
}
#endif

#endif /* WOOFLES_WOOFLES_H */
