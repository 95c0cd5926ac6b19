/* SPDX-License-Identifier: Apache-2.0 */
#include "woofles/woofles.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/device.h"
#include "ferrule/port.h"
#include "woofles/registers.h"

static uint32_t get(const struct woofles *device, uint32_t offset)
{
    return ferrule_mmio_read32(device->base + offset);
}

static void set(const struct woofles *device, uint32_t offset, uint32_t value)
{
    ferrule_mmio_write32(device->base + offset, value);
}

/* Writes a register and returns whether it reads back the value. */
static bool took(const struct woofles *device, uint32_t offset, uint32_t value)
{
    set(device, offset, value);
    return get(device, offset) == value;
}

static uint32_t control_of(const struct woofles *device)
{
    const bool interrupt = device->use_interrupt && !device->interrupt_lost;

    return WOOFLES_CONTROL_ENABLE | (interrupt ? WOOFLES_CONTROL_IRQ_ENABLE : 0u);
}

static int32_t start(struct woofles *device)
{
    if (get(device, WOOFLES_ID) != WOOFLES_ID_RESET ||
        get(device, WOOFLES_VERSION) != WOOFLES_VERSION_RESET) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    set(device, WOOFLES_CONTROL, WOOFLES_CONTROL_RESET);
    device->head = 0;
    device->tail = 0;
    device->completed = 0;
    if (get(device, WOOFLES_CONTROL) != 0u || get(device, WOOFLES_STATUS) != 0u ||
        get(device, WOOFLES_INTERRUPT) != 0u || get(device, WOOFLES_QUEUE_TAIL) != 0u ||
        get(device, WOOFLES_COMPLETED) != 0u) {
        return FERRULE_ERR_DEVICE;
    }
    if (!took(device, WOOFLES_QUEUE_BASE, ferrule_bus_address(device->ring)) ||
        !took(device, WOOFLES_QUEUE_LENGTH, WOOFLES_RING) ||
        !took(device, WOOFLES_CONTROL, control_of(device))) {
        return FERRULE_ERR_DEVICE;
    }
    return FERRULE_OK;
}

static int32_t woofles_activate(void *context)
{
    return context == NULL ? FERRULE_ERR_ARGUMENT : start(context);
}

static int32_t woofles_deactivate(void *context)
{
    const struct woofles *device = context;

    set(device, WOOFLES_CONTROL, WOOFLES_CONTROL_RESET);
    return get(device, WOOFLES_CONTROL) == 0u && get(device, WOOFLES_STATUS) == 0u
               ? FERRULE_OK
               : FERRULE_ERR_DEVICE;
}

/* The device is not in use now, so it is reset if it is busy, stopped or not set up. A user that
 * keeps it active after an error recovers it in this way. */
static int32_t woofles_check(void *context)
{
    struct woofles *device = context;
    const uint32_t busy_or_stopped = WOOFLES_STATUS_BUSY | WOOFLES_STATUS_ERROR;

    if (get(device, WOOFLES_ID) != WOOFLES_ID_RESET) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    if ((get(device, WOOFLES_STATUS) & busy_or_stopped) == 0u &&
        get(device, WOOFLES_CONTROL) == control_of(device) &&
        get(device, WOOFLES_QUEUE_TAIL) == device->head) {
        return FERRULE_OK;
    }
    return start(device);
}

/* Clears repeatedly if one write does not clear the bits: the line is level-sensitive, so a pending
 * interrupt would recur before any other code runs. */
bool woofles_interrupt(struct woofles *device)
{
    uint32_t reasons = get(device, WOOFLES_INTERRUPT);

    if (reasons == 0u) {
        device->spurious++;
    }
    for (uint32_t tries = 0; tries < WOOFLES_CLEAR_TRIES && reasons != 0u; tries++) {
        set(device, WOOFLES_INTERRUPT, reasons);
        reasons = get(device, WOOFLES_INTERRUPT);
    }
    if (reasons != 0u || device->spurious >= WOOFLES_SPURIOUS_MOST) {
        device->interrupt_lost = true;
    }
    return !device->interrupt_lost;
}

static void seal(struct woofles_command *command)
{
    uint32_t words[WOOFLES_COMMAND_WORDS];
    uint32_t sum = 0;

    (void)memcpy(words, command, sizeof(words));
    for (uint32_t index = 0; index < WOOFLES_COMMAND_WORDS - 1u; index++) {
        sum += words[index];
    }
    command->checksum = ~sum;
}

/* Writes the command to the ring and rings the doorbell. */
static int32_t woofles_submit(void *context, const void *command)
{
    struct woofles *device = context;
    const struct woofles_work *work = command;
    const struct woofles_layer *layer = work->layer;
    struct woofles_command *entry = &device->ring[device->head];

    device->sequence++;
    *entry = layer->command;
    entry->sequence = device->sequence;
    entry->input = ferrule_bus_address(work->input);
    entry->second = ferrule_bus_address(layer->weights != NULL ? layer->weights : work->second);
    entry->bias = layer->bias == NULL ? 0u : ferrule_bus_address(layer->bias);
    entry->output = ferrule_bus_address(work->output);
    if (layer->weights != NULL) {
        entry->multipliers = ferrule_bus_address(layer->multipliers);
        entry->shifts = ferrule_bus_address(layer->shifts);
    }
    seal(entry);
    device->spurious = 0;
    device->head = (device->head + 1u) % WOOFLES_RING;
    ferrule_cache_clean(entry, sizeof(*entry));
    ferrule_port_barrier();
    set(device, WOOFLES_QUEUE_HEAD, device->head);
    return FERRULE_OK;
}

/* The number of commands in flight. */
static uint32_t in_flight(const struct woofles *device)
{
    return (device->head + WOOFLES_RING - device->tail) % WOOFLES_RING;
}

static bool woofles_is_over(void *context)
{
    const struct woofles *device = context;

    return (get(device, WOOFLES_STATUS) & WOOFLES_STATUS_ERROR) != 0u ||
           get(device, WOOFLES_COMPLETED) != device->completed;
}

/* The device interrupts after the last command in its queue, so the ones before are looked for. */
static uint32_t woofles_poll_us(void *context)
{
    const struct woofles *device = context;
    const bool interrupts = device->use_interrupt && !device->interrupt_lost;

    return interrupts && in_flight(device) == 1u ? FERRULE_WAIT_DEFAULT : 0u;
}

/* Checks that the device executed this command and no other, and at most the ones after it. */
static int32_t verify(const struct woofles *device)
{
    const uint32_t status = get(device, WOOFLES_STATUS);
    const uint32_t count = get(device, WOOFLES_COMPLETED) - device->completed;
    const uint32_t waiting = in_flight(device);

    if ((status & WOOFLES_STATUS_ERROR) != 0u || count == 0u || count > waiting) {
        return FERRULE_ERR_DEVICE;
    }
    if (count < waiting) { /* it works on a later one */
        return FERRULE_OK;
    }
    return status == WOOFLES_STATUS_DONE && get(device, WOOFLES_SEQUENCE) == device->sequence &&
                   get(device, WOOFLES_QUEUE_TAIL) == device->head
               ? FERRULE_OK
               : FERRULE_ERR_DEVICE;
}

static int32_t woofles_finish(void *context)
{
    struct woofles *device = context;
    struct woofles_command *entry = &device->ring[device->tail];
    const int32_t status = verify(device);

    ferrule_port_barrier();
    entry->operation = 0; /* so that a corrupted head cannot execute it again */
    ferrule_cache_clean(entry, sizeof(*entry));
    device->tail = (device->tail + 1u) % WOOFLES_RING;
    device->completed++;
    return status;
}

/* A reset stops the device and everything that it would still do. */
static int32_t woofles_abort(void *context)
{
    struct woofles *device = context;
    const int32_t status = start(device);

    for (uint32_t index = 0; index < WOOFLES_RING; index++) {
        device->ring[index].operation = 0;
    }
    ferrule_cache_clean(device->ring, sizeof(device->ring));
    return status;
}

static bool woofles_is_stopped(void *context)
{
    const struct woofles *device = context;

    return get(device, WOOFLES_ID) == WOOFLES_ID_RESET &&
           (get(device, WOOFLES_STATUS) & WOOFLES_STATUS_BUSY) == 0u;
}

const struct ferrule_driver woofles_driver = {
    .name = "woofles",
    .activate = woofles_activate,
    .deactivate = woofles_deactivate,
    .check = woofles_check,
    .submit = woofles_submit,
    .is_over = woofles_is_over,
    .poll_us = woofles_poll_us,
    .finish = woofles_finish,
    .abort = woofles_abort,
    .is_stopped = woofles_is_stopped,
    .depth = WOOFLES_RING - 1u,
};

int32_t woofles_start(void *resource_handle, const struct woofles_layer *layer, const int8_t *input,
                      const int8_t *second, int8_t *output)
{
    const struct woofles_work work = {
        .layer = layer, .input = input, .second = second, .output = output};

    if (layer == NULL || input == NULL || output == NULL ||
        (layer->weights == NULL && second == NULL)) {
        return FERRULE_ERR_ARGUMENT;
    }
    return ferrule_device_submit(resource_handle, &woofles_driver, &work);
}

int32_t woofles_execute(void *resource_handle, const struct woofles_layer *layer,
                        const int8_t *input, const int8_t *second, int8_t *output)
{
    const int32_t status = woofles_start(resource_handle, layer, input, second, output);

    return status == FERRULE_OK ? ferrule_device_finish(resource_handle, layer->timeout_us)
                                : status;
}
