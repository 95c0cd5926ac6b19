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
    device->is_set_up = false;
    if (get(device, WOOFLES_ID) != WOOFLES_ID_RESET ||
        get(device, WOOFLES_VERSION) != WOOFLES_VERSION_RESET) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    set(device, WOOFLES_CONTROL, WOOFLES_CONTROL_RESET);
    device->head = 0;
    device->completed = 0;
    device->interrupts = 0;
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
    device->is_set_up = true;
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
    return get(device, WOOFLES_CONTROL) == 0u ? FERRULE_OK : FERRULE_ERR_DEVICE;
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
    if (device->is_set_up && (get(device, WOOFLES_STATUS) & busy_or_stopped) == 0u &&
        get(device, WOOFLES_CONTROL) == control_of(device) &&
        get(device, WOOFLES_QUEUE_TAIL) == device->head) {
        return FERRULE_OK;
    }
    return start(device);
}

const struct ferrule_driver woofles_driver = {
    .name = "woofles",
    .activate = woofles_activate,
    .deactivate = woofles_deactivate,
    .check = woofles_check,
};

/* Clears repeatedly if one write does not clear the bits: the line is level-sensitive, so a pending
 * interrupt would recur before any other code runs. */
bool woofles_interrupt(struct woofles *device)
{
    uint32_t reasons = get(device, WOOFLES_INTERRUPT);

    if (reasons == 0u) {
        device->spurious++;
    }
    for (uint32_t tries = 0; tries < WOOFLES_CLEAR_TRIES && reasons != 0u; tries++) {
        device->interrupts |= reasons;
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

    memcpy(words, command, sizeof(words));
    for (uint32_t index = 0; index < WOOFLES_COMMAND_WORDS - 1u; index++) {
        sum += words[index];
    }
    command->checksum = ~sum;
}

/* Writes the command to the ring and rings the doorbell. */
static void submit(struct woofles *device, const struct woofles_layer *layer, const int8_t *input,
                   const int8_t *second, int8_t *output)
{
    struct woofles_command *command = &device->ring[device->head];

    device->sequence++;
    *command = layer->command;
    command->sequence = device->sequence;
    command->input = ferrule_bus_address(input);
    command->second = ferrule_bus_address(second);
    command->bias = layer->bias == NULL ? 0u : ferrule_bus_address(layer->bias);
    command->output = ferrule_bus_address(output);
    if (layer->weights != NULL) {
        command->multipliers = ferrule_bus_address(layer->multipliers);
        command->shifts = ferrule_bus_address(layer->shifts);
    }
    seal(command);
    device->interrupts = 0;
    device->spurious = 0;
    device->head = (device->head + 1u) % WOOFLES_RING;
    ferrule_cache_clean(command, sizeof(*command));
    ferrule_port_barrier();
    set(device, WOOFLES_QUEUE_HEAD, device->head);
}

static bool is_over(const struct woofles *device)
{
    const uint32_t reached = WOOFLES_STATUS_DONE | WOOFLES_STATUS_ERROR;

    if (device->use_interrupt && !device->interrupt_lost) {
        return device->interrupts != 0u;
    }
    return (get(device, WOOFLES_STATUS) & reached) != 0u;
}

static int32_t wait(const struct woofles *device, uint32_t patience)
{
    for (uint32_t look = 0; look < patience; look++) {
        if (is_over(device)) {
            return FERRULE_OK;
        }
        if (device->use_interrupt && device->idle != NULL) {
            device->idle(device->idle_context);
        }
    }
    return is_over(device) ? FERRULE_OK : FERRULE_ERR_TIMEOUT;
}

/* Checks that this command, and no other, was executed. */
static int32_t verify(struct woofles *device)
{
    const uint32_t status = get(device, WOOFLES_STATUS);
    const uint32_t completed = get(device, WOOFLES_COMPLETED);

    if (status != WOOFLES_STATUS_DONE || completed != device->completed + 1u ||
        get(device, WOOFLES_SEQUENCE) != device->sequence ||
        get(device, WOOFLES_QUEUE_TAIL) != device->head) {
        return FERRULE_ERR_DEVICE;
    }
    device->completed = completed;
    return FERRULE_OK;
}

int32_t woofles_execute(void *resource_handle, const struct woofles_layer *layer,
                        const int8_t *input, const int8_t *second, int8_t *output)
{
    void *context = NULL;
    int32_t status = ferrule_device_context(resource_handle, &woofles_driver, &context);

    if (status != FERRULE_OK) {
        return status;
    }
    if (layer == NULL || input == NULL || output == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (layer->weights != NULL) {
        second = layer->weights;
    }
    if (second == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    struct woofles *device = context;
    struct woofles_command *command = &device->ring[device->head];
    submit(device, layer, input, second, output);
    status = wait(device, layer->patience);
    if (status == FERRULE_OK) {
        status = verify(device);
    }
    ferrule_port_barrier();
    command->operation = 0; /* so that a corrupted head cannot execute it again */
    ferrule_cache_clean(command, sizeof(*command));
    if (status != FERRULE_OK) {
        (void)start(device); /* if this also fails, the next check tries again */
    }
    return status;
}
