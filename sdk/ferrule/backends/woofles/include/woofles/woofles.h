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

/** Entries of the command ring; one of them stays free. */
#define WOOFLES_RING 4u

/** Number of spurious interrupts during one command after which the driver stops using the
 * interrupt. */
#define WOOFLES_SPURIOUS_MOST 100u

/** Number of attempts to clear an interrupt before the driver stops using it. */
#define WOOFLES_CLEAR_TRIES 4u

/** One device; the context of its driver. The user sets the members up to `use_interrupt`; the
 * others are private to the driver and start at zero. */
struct woofles {
    uintptr_t base; /* address of the registers */
    bool use_interrupt;

    uint32_t head;                /* index of the next free command in the ring */
    uint32_t tail;                /* index of the oldest command that was not collected */
    uint32_t sequence;            /* of the last command */
    uint32_t completed;           /* COMPLETED before the oldest command */
    volatile uint32_t spurious;   /* spurious interrupts since the last command began */
    volatile bool interrupt_lost; /* interrupt no longer used: the driver polls instead */
    struct woofles_command ring[WOOFLES_RING];
};

/** The constant part of a layer. */
struct woofles_layer {
    struct woofles_command command; /* without sequence, addresses and checksum */
    const int8_t *weights;          /* NULL for ADD and MUL */
    const int32_t *bias;            /* may be NULL */
    const int32_t *multipliers;     /* per output channel; NULL for ADD and MUL */
    const int32_t *shifts;
    uint32_t timeout_us; /* limit of the wait for it, from when it is awaited on */
};

/** A command for ferrule_device_submit(): a layer and its tensors. */
struct woofles_work {
    const struct woofles_layer *layer;
    const int8_t *input;
    const int8_t *second; /* the other operand of ADD and MUL, NULL for layers with weights */
    int8_t *output;
};

extern const struct ferrule_driver woofles_driver;

/**
 * @brief Begin one layer and return at once; ferrule_device_finish() collects it. For operators:
 * the handle must be open.
 * @param resource_handle  the ferrule_device_t that woofles_driver is bound to
 * @param second           the other operand of ADD and MUL, NULL for layers with weights
 * @return as ferrule_device_submit()
 * @retval FERRULE_ERR_ARGUMENT  or a required pointer is null
 */
int32_t woofles_start(void *resource_handle, const struct woofles_layer *layer, const int8_t *input,
                      const int8_t *second, int8_t *output);

/**
 * @brief Run one layer and wait until it is complete: woofles_start() and ferrule_device_finish().
 * @return as both
 * @retval FERRULE_ERR_TIMEOUT  the layer was not complete in time
 * @retval FERRULE_ERR_DEVICE   the device reported a failure or an inconsistent state
 *
 * After an error the device has been reset, and the output is undefined. A device that could not be
 * reset may still write to its output: then the handle is lost, see ferrule_device_abort().
 */
int32_t woofles_execute(void *resource_handle, const struct woofles_layer *layer,
                        const int8_t *input, const int8_t *second, int8_t *output);

/**
 * @brief The handler of the device's interrupt.
 * @return true if the line is low again. If false, the caller must mask the interrupt, which would
 * otherwise recur endlessly; the driver polls from then on. The caller then calls
 * ferrule_device_notify(), which wakes the thread that waits.
 */
bool woofles_interrupt(struct woofles *device);

#ifdef __cplusplus
}
#endif

#endif /* WOOFLES_WOOFLES_H */
