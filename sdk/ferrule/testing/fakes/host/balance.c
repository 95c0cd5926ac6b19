/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "fake.h"

enum { MAX_LEFT = 32, MAX_HANDLES = 256, NAME = 32 };

/* A handle that is activated or open. */
struct handle {
    const void *address; /* NULL: its storage was initialised again */
    char driver[NAME];
    uint32_t activations, opener; /* opener: the thread that has it open, 0: none */
};

static struct handle handles[MAX_HANDLES];
static uint32_t handle_count;
static char left[MAX_LEFT][FERRULE_FAKE_TEXT];
static uint32_t left_count;

/* Locked. */
static struct handle *handle_at(const void *address)
{
    for (struct handle *handle = handles; handle < &handles[handle_count]; handle++) {
        if (handle->address == address) {
            return handle;
        }
    }
    return NULL;
}

/* Locked. */
static struct handle *new_handle(const void *address)
{
    if (handle_count == MAX_HANDLES) {
        fake_misuse("more than %d device handles are activated", MAX_HANDLES);
        return NULL;
    }
    handles[handle_count] = (struct handle){.address = address};
    return &handles[handle_count++];
}

void fake_handle_initialised(const void *address)
{
    fake_lock();
    struct handle *handle = handle_at(address);
    if (handle != NULL) {
        handle->address = NULL;
    }
    fake_unlock();
}

void fake_handle_changed(const void *address, const char *driver, uint32_t activations, bool open)
{
    struct handle *handle = handle_at(address);
    if (activations == 0u && !open) {
        if (handle != NULL) {
            *handle = handles[--handle_count];
        }
        return;
    }
    if (handle == NULL) {
        handle = new_handle(address);
    }
    if (handle != NULL) {
        (void)snprintf(handle->driver, sizeof handle->driver, "%s", driver);
        handle->activations = activations;
        handle->opener = !open ? 0u : handle->opener != 0u ? handle->opener : fake_thread();
    }
}

void fake_left(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (left_count < MAX_LEFT) {
        (void)vsnprintf(left[left_count++], FERRULE_FAKE_TEXT, format, arguments);
    }
    va_end(arguments);
}

uint32_t ferrule_fake_left_count(void)
{
    fake_lock();
    left_count = 0;
    for (const struct handle *handle = handles; handle < &handles[handle_count]; handle++) {
        const char *again =
            handle->address == NULL ? ", although its storage was initialised again" : "";
        if (handle->opener != 0u) {
            fake_left("the device handle %p of the driver '%s' is open, by thread %u%s",
                      handle->address, handle->driver, (unsigned)handle->opener, again);
        }
        if (handle->activations > 0u) {
            fake_left("the device handle %p of the driver '%s' is activated, %u times%s",
                      handle->address, handle->driver, (unsigned)handle->activations, again);
        }
    }
    fake_list_left_threads();
    fake_list_left();
    fake_unlock();
    return left_count;
}

const char *ferrule_fake_left(uint32_t index)
{
    return left[index];
}

void fake_reset_balance(void)
{
    handle_count = 0;
}
