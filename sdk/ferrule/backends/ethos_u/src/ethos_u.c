/* SPDX-License-Identifier: Apache-2.0 */
#include "ethos_u/own.h"

#include <stddef.h>

#include "ethos_u/registers.h"
#include "ferrule/device.h"
#include "ferrule/port.h"

#define ARCH_MAJOR (1u << ETHOS_U_ID_ARCH_MAJOR_SHIFT)
#define AXI_LIMIT                                                                                  \
    ((31u << ETHOS_U_AXI_LIMIT_READS_M1_SHIFT) | (15u << ETHOS_U_AXI_LIMIT_WRITES_M1_SHIFT))
#define FAULTS                                                                                     \
    (ETHOS_U_STATUS_BUS | ETHOS_U_STATUS_PARSE_ERROR | ETHOS_U_STATUS_WEIGHT_FAULT |               \
     ETHOS_U_STATUS_ECC_FAULT)
/* AXI configurations: 0 and 1 are those of the first port, for scratch, and 2 and 3 those of the
 * second one, for constants and commands. */
#define QUEUE_CONFIG   2u
#define REGION_CONFIGS (3u | (0u << 2) | (1u << 4))

static uint32_t get(const struct ethos_u *device, uint32_t offset)
{
    return ferrule_mmio_read32(device->base + offset);
}

static void set(const struct ethos_u *device, uint32_t offset, uint32_t value)
{
    ferrule_mmio_write32(device->base + offset, value);
}

/* Writes a register and returns whether it reads back the value. */
static bool took(const struct ethos_u *device, uint32_t offset, uint32_t value)
{
    set(device, offset, value);
    return get(device, offset) == value;
}

static uint32_t levels_of(const struct ethos_u *device)
{
    return (device->unprivileged ? 0u : ETHOS_U_PROT_CPL) |
           (device->nonsecure ? ETHOS_U_PROT_CSL : 0u);
}

static bool is_present(const struct ethos_u *device)
{
    const uint32_t config = get(device, ETHOS_U_CONFIG);

    return (get(device, ETHOS_U_ID) & ETHOS_U_ID_ARCH_MAJOR_MASK) == ARCH_MAJOR &&
           (device->config == 0u || ((config ^ device->config) & ETHOS_U_CONFIG_BITS) == 0u);
}

/* Stops the NPU and everything that it would still do, and sets it up. */
static int32_t start(const struct ethos_u *device)
{
    uint32_t reads = 0;

    if (!is_present(device)) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    set(device, ETHOS_U_RESET, levels_of(device));
    while ((get(device, ETHOS_U_STATUS) & ETHOS_U_STATUS_RESETTING) != 0u) {
        if (reads == ETHOS_U_RESET_READS) {
            return FERRULE_ERR_DEVICE;
        }
        reads++;
    }
    if (get(device, ETHOS_U_STATUS) != 0u || get(device, ETHOS_U_PROT) != levels_of(device)) {
        return FERRULE_ERR_DEVICE;
    }
    for (uint32_t index = 0; index < ETHOS_U_AXI_LIMIT_COUNT; index++) {
        if (!took(device, ETHOS_U_AXI_LIMIT(index), AXI_LIMIT)) {
            return FERRULE_ERR_DEVICE;
        }
    }
    return took(device, ETHOS_U_CMD, 0u) && took(device, ETHOS_U_QCONFIG, QUEUE_CONFIG) &&
                   took(device, ETHOS_U_REGIONCFG, REGION_CONFIGS)
               ? FERRULE_OK
               : FERRULE_ERR_DEVICE;
}

static int32_t ethos_u_activate(void *context)
{
    return context == NULL ? FERRULE_ERR_ARGUMENT : start(context);
}

/* A reset NPU may be switched off: CMD is then CLOCK_Q and POWER_Q. */
static int32_t ethos_u_deactivate(void *context)
{
    const struct ethos_u *device = context;

    set(device, ETHOS_U_RESET, levels_of(device));
    return get(device, ETHOS_U_STATUS) == 0u && took(device, ETHOS_U_CMD, ETHOS_U_CMD_RESET)
               ? FERRULE_OK
               : FERRULE_ERR_DEVICE;
}

/* The NPU is not in use now, so it is reset if it runs, has failed or is not set up. */
static int32_t ethos_u_check(void *context)
{
    const struct ethos_u *device = context;

    if (!is_present(device)) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    if ((get(device, ETHOS_U_STATUS) & ~(ETHOS_U_STATUS_END_REACHED | ETHOS_U_STATUS_PMU_IRQ)) ==
            0u &&
        get(device, ETHOS_U_PROT) == levels_of(device) &&
        get(device, ETHOS_U_AXI_LIMIT(0)) == AXI_LIMIT &&
        get(device, ETHOS_U_REGIONCFG) == REGION_CONFIGS) {
        return FERRULE_OK;
    }
    return start(device);
}

/* Lowers the interrupt, and returns the reasons that remain. */
static uint32_t clear_interrupt(const struct ethos_u *device)
{
    set(device, ETHOS_U_CMD, ETHOS_U_CMD_CLEAR_IRQ | ETHOS_U_CMD_CLEAR_HISTORY_MASK);
    return get(device, ETHOS_U_STATUS) & (ETHOS_U_STATUS_IRQ | ETHOS_U_STATUS_PMU_IRQ);
}

/* Clears repeatedly if one write does not clear the bits: the line is level-sensitive, so a pending
 * interrupt would recur before any other code runs. */
bool ethos_u_interrupt(struct ethos_u *device)
{
    uint32_t reasons = get(device, ETHOS_U_STATUS) & (ETHOS_U_STATUS_IRQ | ETHOS_U_STATUS_PMU_IRQ);

    if (reasons == 0u) {
        device->spurious++;
    }
    for (uint32_t tries = 0; tries < ETHOS_U_CLEAR_TRIES && reasons != 0u; tries++) {
        reasons = clear_interrupt(device);
    }
    if (reasons != 0u || device->spurious >= ETHOS_U_SPURIOUS_MOST) {
        device->interrupt_lost = true;
    }
    return !device->interrupt_lost;
}

/* Sets the addresses. All are read back, since the NPU would access whatever they point to. A write
 * of QBASE or QSIZE clears the end of the stream before, so the status is zero then, but for a
 * counter of the performance monitor that has overflowed: that is the application's. */
static bool set_addresses(const struct ethos_u *device, const struct ethos_u_header *header)
{
    for (uint32_t region = 0; region < ETHOS_U_REGIONS; region++) {
        const uint8_t *start = ethos_u_region(&device->work, region);

        if (!took(device, ETHOS_U_BASEP(region), start == NULL ? 0u : ferrule_bus_address(start))) {
            return false;
        }
    }
    return took(device, ETHOS_U_QBASE, ferrule_bus_address(header->commands)) &&
           took(device, ETHOS_U_QSIZE, header->command_bytes) &&
           (get(device, ETHOS_U_STATUS) & ~ETHOS_U_STATUS_PMU_IRQ) == 0u;
}

static int32_t ethos_u_submit(void *context, const void *command)
{
    struct ethos_u *device = context;
    const struct ethos_u_work *work = command;
    struct ethos_u_header header;
    int32_t status = ethos_u_check_work(work);

    if (status == FERRULE_OK) {
        status = ethos_u_read_header(work->stream, &header);
    }
    if (status != FERRULE_OK) {
        return status;
    }
    if (!ethos_u_is_compatible(&header, get(device, ETHOS_U_CONFIG), get(device, ETHOS_U_ID))) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    device->work = *work;
    device->command_bytes = header.command_bytes;
    device->spurious = 0;
    if (!set_addresses(device, &header)) {
        return FERRULE_ERR_DEVICE;
    }
    ferrule_port_barrier();
    set(device, ETHOS_U_CMD, ETHOS_U_CMD_RUN);
    return FERRULE_OK;
}

static bool ethos_u_is_over(void *context)
{
    const uint32_t status = get(context, ETHOS_U_STATUS);

    return (status & ETHOS_U_STATUS_RUNNING) == 0u &&
           (status & (ETHOS_U_STATUS_END_REACHED | FAULTS)) != 0u;
}

static uint32_t ethos_u_poll_us(void *context)
{
    const struct ethos_u *device = context;

    return device->use_interrupt && !device->interrupt_lost ? FERRULE_WAIT_DEFAULT : 0u;
}

/* Checks that the NPU executed the whole stream, and that its addresses are still those. */
static int32_t ethos_u_finish(void *context)
{
    struct ethos_u *device = context;
    const uint32_t status = get(device, ETHOS_U_STATUS);
    const uint32_t over = ETHOS_U_STATUS_RUNNING | ETHOS_U_STATUS_END_REACHED | FAULTS;

    if ((status & over) != ETHOS_U_STATUS_END_REACHED ||
        get(device, ETHOS_U_QREAD) != device->command_bytes) {
        return FERRULE_ERR_DEVICE;
    }
    if ((status & ETHOS_U_STATUS_IRQ) != 0u && clear_interrupt(device) != 0u) {
        return FERRULE_ERR_DEVICE;
    }
    ferrule_port_barrier();
    return FERRULE_OK;
}

static int32_t ethos_u_abort(void *context)
{
    return start(context);
}

static bool ethos_u_is_stopped(void *context)
{
    return is_present(context) && (get(context, ETHOS_U_STATUS) &
                                   (ETHOS_U_STATUS_RUNNING | ETHOS_U_STATUS_RESETTING)) == 0u;
}

const struct ferrule_driver ethos_u_driver = {
    .name = "ethos_u",
    .activate = ethos_u_activate,
    .deactivate = ethos_u_deactivate,
    .check = ethos_u_check,
    .submit = ethos_u_submit,
    .is_over = ethos_u_is_over,
    .poll_us = ethos_u_poll_us,
    .finish = ethos_u_finish,
    .abort = ethos_u_abort,
    .is_stopped = ethos_u_is_stopped,
    .depth = 1,
};
