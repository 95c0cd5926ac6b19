/* SPDX-License-Identifier: Apache-2.0 */
#include "late_npu.h"

#include <string.h>

#include "ferrule/device.h"

#define FAULT (-77)

uint32_t late_npu_dice, late_npu_calls, late_npu_fault_at = UINT32_MAX;

static int32_t call(void)
{
    return late_npu_calls++ == late_npu_fault_at ? FAULT : FERRULE_OK;
}

static void do_next(struct late_npu *npu)
{
    const struct late_npu_command *command = &npu->queue[npu->done];

    if (command->program != NULL) {
        command->program(npu->memory);
    } else {
        (void)memcpy(command->target, command->source, command->bytes);
    }
    npu->done++;
}

/* The device does as much as it likes. */
static void proceed(struct late_npu *npu)
{
    while (npu->done < npu->count) {
        late_npu_dice = late_npu_dice * 1664525u + 1013904223u;
        if ((late_npu_dice >> 30) != 0u) {
            return;
        }
        do_next(npu);
    }
}

static int32_t npu_activate(void *context)
{
    struct late_npu *npu = context;
    const int32_t status = call();

    npu->active = status == FERRULE_OK;
    return status;
}

static int32_t npu_deactivate(void *context)
{
    struct late_npu *npu = context;

    npu->active = false;
    return npu->count == 0u ? call() : FERRULE_ERR_STATE;
}

/* A device with commands in its queue was not given back by its last user. */
static int32_t npu_check(void *context)
{
    const struct late_npu *npu = context;

    return npu->active && npu->count == 0u ? call() : FERRULE_ERR_STATE;
}

static int32_t submit(struct late_npu *npu, struct late_npu_command command)
{
    const int32_t status = call();

    proceed(npu);
    if (status == FERRULE_OK) {
        if (npu->count == npu->depth) {
            return FERRULE_ERR_BUSY;
        }
        npu->queue[npu->count] = command;
        npu->count++;
        proceed(npu);
    }
    return status;
}

static int32_t npu_submit(void *context, const void *command)
{
    return submit(context, *(const struct late_npu_command *)command);
}

static int32_t npu_submit_copy_to(void *context, uint32_t device_offset, const void *source,
                                  size_t bytes)
{
    struct late_npu *npu = context;

    return submit(npu, (struct late_npu_command){.target = npu->memory + device_offset,
                                                 .source = source,
                                                 .bytes = bytes});
}

static int32_t npu_submit_copy_from(void *context, void *destination, uint32_t device_offset,
                                    size_t bytes)
{
    struct late_npu *npu = context;

    return submit(npu, (struct late_npu_command){.target = destination,
                                                 .source = npu->memory + device_offset,
                                                 .bytes = bytes});
}

static bool npu_is_over(void *context)
{
    struct late_npu *npu = context;

    if (npu->done == 0u) {
        do_next(npu);
    }
    proceed(npu);
    return true;
}

static int32_t npu_finish(void *context)
{
    struct late_npu *npu = context;

    (void)memmove(npu->queue, npu->queue + 1, sizeof npu->queue - sizeof npu->queue[0]);
    npu->count--;
    npu->done--;
    return call();
}

static int32_t npu_abort(void *context)
{
    struct late_npu *npu = context;

    npu->count = 0;
    npu->done = 0;
    return FERRULE_OK;
}

static bool npu_is_stopped(void *context)
{
    const struct late_npu *npu = context;

    return npu->done == npu->count;
}

static int32_t wait_for(struct late_npu *npu, int32_t status)
{
    if (status == FERRULE_OK) {
        if (npu->count != 1u) {
            return FERRULE_ERR_STATE; /* a call that waits, while commands are in the queue */
        }
        (void)npu_is_over(npu);
        status = npu_finish(npu);
    }
    return status;
}

static int32_t npu_copy_to(void *context, uint32_t device_offset, const void *source, size_t bytes)
{
    return wait_for(context, npu_submit_copy_to(context, device_offset, source, bytes));
}

static int32_t npu_copy_from(void *context, void *destination, uint32_t device_offset, size_t bytes)
{
    return wait_for(context, npu_submit_copy_from(context, destination, device_offset, bytes));
}

const struct ferrule_driver late_npu_driver = {
    .name = "late_npu",
    .activate = npu_activate,
    .deactivate = npu_deactivate,
    .check = npu_check,
    .copy_to = npu_copy_to,
    .copy_from = npu_copy_from,
    .memory_bytes = UINT32_MAX,
    .submit = npu_submit,
    .submit_copy_to = npu_submit_copy_to,
    .submit_copy_from = npu_submit_copy_from,
    .is_over = npu_is_over,
    .finish = npu_finish,
    .abort = npu_abort,
    .is_stopped = npu_is_stopped,
    .depth = LATE_NPU_MOST,
};

int32_t late_npu_start(void *resource_handle, void (*program)(uint8_t *memory))
{
    const struct late_npu_command command = {.program = program};

    return ferrule_device_submit(resource_handle, &late_npu_driver, &command);
}

int32_t late_npu_execute(void *resource_handle, void (*program)(uint8_t *memory))
{
    const int32_t status = late_npu_start(resource_handle, program);

    if (status != FERRULE_OK) {
        return status;
    }
    return ferrule_device_in_flight(resource_handle) == 1u
               ? ferrule_device_finish(resource_handle, FERRULE_WAIT_DEFAULT)
               : FERRULE_ERR_STATE;
}
