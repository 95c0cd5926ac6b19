/* SPDX-License-Identifier: Apache-2.0 */
#include "ethos_u/arm.h"

#include "ethos_u/registers.h"
#include "ferrule/port.h"
#include "ferrule/status.h"

#define GATING (ETHOS_U_CMD_CLOCK_Q | ETHOS_U_CMD_POWER_Q) /* which a write of CMD keeps */

#ifdef ETHOSU65
#define PRODUCT 1u
#else
#define PRODUCT 0u
#endif

static uint32_t get(const struct ethos_u_arm *device, uint32_t offset)
{
    return ferrule_mmio_read32(device->base + offset);
}

static bool is_raised(const struct ethos_u_arm *device)
{
    return (get(device, ETHOS_U_STATUS) & ETHOS_U_STATUS_IRQ) != 0u;
}

/* A reset that ended and one that was ignored look the same to Arm's driver; the state tells. */
static int32_t stopped(const struct ethos_u_arm *device)
{
    return (get(device, ETHOS_U_STATUS) & (ETHOS_U_STATUS_RUNNING | ETHOS_U_STATUS_RESETTING)) == 0u
               ? FERRULE_OK
               : FERRULE_ERR_DEVICE;
}

static bool is_present(const struct ethos_u_arm *device)
{
    return get(device, ETHOS_U_CONFIG) >> ETHOS_U_CONFIG_PRODUCT_SHIFT == PRODUCT;
}

static void leave(struct ethos_u_arm *device)
{
    if (device->is_ready) {
        device->is_ready = false;
        ethosu_deinit(&device->npu);
    }
}

static int32_t start(struct ethos_u_arm *device)
{
    int32_t status;

    leave(device);
    if (!is_present(device)) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    if (ethosu_init(&device->npu, (void *)device->base, NULL, 0, device->nonsecure ? 0u : 1u,
                    device->unprivileged ? 0u : 1u) != 0) {
        return FERRULE_ERR_DEVICE;
    }
    device->is_ready = true;
    status = stopped(device);
    if (status != FERRULE_OK) {
        leave(device);
    }
    return status;
}

static int32_t arm_activate(void *context)
{
    struct ethos_u_arm *device = context;

    if (device == NULL || device->base == 0u) {
        return FERRULE_ERR_ARGUMENT;
    }
    device->spurious = 0;
    device->interrupt_lost = false;
    return start(device);
}

static int32_t arm_deactivate(void *context)
{
    struct ethos_u_arm *device = context;

    leave(device);
    return stopped(device);
}

/* The driver resets the device at each inference, so no more than its presence is checked. */
static int32_t arm_check(void *context)
{
    struct ethos_u_arm *device = context;

    if (!is_present(device)) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    return device->is_ready && device->npu.job.state == ETHOSU_JOB_IDLE &&
                   stopped(device) == FERRULE_OK
               ? FERRULE_OK
               : start(device);
}

/* Ends the work that an invocation began before it failed. */
static int32_t give_up(struct ethos_u_arm *device)
{
    if (device->npu.power_request_counter != 0u) {
        device->npu.power_request_counter = 0;
        (void)ethosu_soft_reset(&device->npu); /* the command is refused in any case */
    }
    return FERRULE_ERR_DEVICE;
}

static int32_t arm_submit(void *context, const void *command)
{
    struct ethos_u_arm *device = context;
    const struct ethos_u_work *work = command;
    const struct ethos_u_stream *stream = work->stream;
    const size_t bytes[ETHOS_U_REGIONS] = {stream->read_only_bytes, stream->scratch_bytes,
                                           work->fast_scratch == NULL ? 0u
                                                                      : stream->fast_scratch_bytes};
    int32_t status = ethos_u_check_work(work);

    if (status != FERRULE_OK) {
        return status;
    }
    for (uint32_t index = 0; index < ETHOS_U_REGIONS; index++) {
        device->regions[index] = (uintptr_t)ethos_u_region(work, index);
        device->region_bytes[index] = bytes[index];
    }
    device->work = *work;
    device->spurious = 0;
    if (ethosu_invoke_async(&device->npu, stream->payload, (int)stream->payload_bytes,
                            device->regions, device->region_bytes, (int)ETHOS_U_REGIONS,
                            NULL) != 0) {
        return give_up(device);
    }
    /* a payload without a stream: there is nothing to wait for */
    return device->npu.job.state == ETHOSU_JOB_IDLE ? FERRULE_ERR_ARGUMENT : FERRULE_OK;
}

/* Lets Arm's handler note that the work is over; the interrupt and the waiting thread both call it.
 * Returns whether it was. */
static bool noted(struct ethos_u_arm *device)
{
    const uint32_t masked = ferrule_port_critical_enter();
    const bool is_over = device->npu.job.state == ETHOSU_JOB_RUNNING && is_raised(device);

    if (is_over) {
        ethosu_irq_handler(&device->npu);
    }
    ferrule_port_critical_exit(masked);
    return is_over;
}

/* Looks at the device, too, so that a lost interrupt only costs time. */
static bool arm_is_over(void *context)
{
    struct ethos_u_arm *device = context;

    (void)noted(device); /* it may have been noted before */
    return device->npu.job.state != ETHOSU_JOB_RUNNING;
}

static uint32_t arm_poll_us(void *context)
{
    const struct ethos_u_arm *device = context;

    return device->use_interrupt && !device->interrupt_lost ? FERRULE_WAIT_DEFAULT : 0u;
}

static int32_t arm_finish(void *context)
{
    struct ethos_u_arm *device = context;

    return ethosu_wait(&device->npu, true) == 0 ? FERRULE_OK : FERRULE_ERR_DEVICE;
}

/* Arm's driver takes a semaphore that nobody gave for a timeout, and resets the device. */
static int32_t arm_abort(void *context)
{
    struct ethos_u_arm *device = context;

    if (device->npu.job.state == ETHOSU_JOB_IDLE) {
        if (ethosu_soft_reset(&device->npu) != 0) {
            return FERRULE_ERR_DEVICE;
        }
    } else {
        (void)ethosu_wait(&device->npu, true); /* it says again that the work failed */
    }
    return stopped(device);
}

static bool arm_is_stopped(void *context)
{
    return is_present(context) && stopped(context) == FERRULE_OK;
}

/* Clears repeatedly if one write does not clear the line, which is level-sensitive: a pending
 * interrupt would recur before any other code runs. An interrupt without work is not for Arm's
 * handler, which would take it for the end of work that never began. */
bool ethos_u_arm_interrupt(struct ethos_u_arm *device)
{
    if (!noted(device)) {
        device->spurious++;
    }
    for (uint32_t tries = 0; tries < ETHOS_U_ARM_CLEAR_TRIES && is_raised(device); tries++) {
        ferrule_mmio_write32(device->base + ETHOS_U_CMD,
                             (get(device, ETHOS_U_CMD) & GATING) | ETHOS_U_CMD_CLEAR_IRQ);
    }
    if (is_raised(device) || device->spurious >= ETHOS_U_ARM_SPURIOUS_MOST) {
        device->interrupt_lost = true;
    }
    return !device->interrupt_lost;
}

const struct ferrule_driver ethos_u_driver = {
    .name = "ethos_u",
    .activate = arm_activate,
    .deactivate = arm_deactivate,
    .check = arm_check,
    .submit = arm_submit,
    .is_over = arm_is_over,
    .poll_us = arm_poll_us,
    .finish = arm_finish,
    .abort = arm_abort,
    .is_stopped = arm_is_stopped,
    .depth = 1u,
};
