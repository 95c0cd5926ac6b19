/* SPDX-License-Identifier: Apache-2.0 */
/* Plays the part of Arm's Ethos-U core driver towards Ferrule's shims: the same calls in the same
 * order, the same register accesses, and the same results. It was written from a description of the
 * driver's behaviour and shares no text with it. Its registers go through ferrule/port.h, so that a
 * device model can answer on the host; those of the real driver are a volatile struct. */
#include "ethosu_driver.h"

#include <string.h>

#include "ethos_u/registers.h"
#include "ferrule/port.h"

#define FOURCC      0x31504f43u
#define FOREVER     UINT64_MAX
#define RESET_READS 1000 /* a hundredth of the driver's, for which a model in Python takes long */
#define GATING      (ETHOS_U_CMD_CLOCK_Q | ETHOS_U_CMD_POWER_Q)
#define AXI_LIMIT   0x0f1f0000u
#define FAULTS                                                                                     \
    (ETHOS_U_STATUS_BUS | ETHOS_U_STATUS_PARSE_ERROR | ETHOS_U_STATUS_WEIGHT_FAULT |               \
     ETHOS_U_STATUS_ECC_FAULT)
#define SAME_CONFIG                                                                                \
    (ETHOS_U_CONFIG_PRODUCT_MASK | ETHOS_U_CONFIG_MACS_LOG2_MASK |                                 \
     ETHOS_U_CONFIG_STREAM_VERSION_MASK)

static uint32_t devices; /* the driver has a list */
static void *mutex;
static void *available;

uint64_t ethosu_address_remap(uint64_t address, int index);

static uint32_t get(const struct ethosu_driver *drv, uint32_t offset)
{
    return ferrule_mmio_read32(drv->base + offset);
}

static void set(const struct ethosu_driver *drv, uint32_t offset, uint32_t value)
{
    ferrule_mmio_write32(drv->base + offset, value);
}

static int reset(struct ethosu_driver *drv)
{
    set(drv, ETHOS_U_RESET, drv->protection);
    for (int tries = 0; tries < RESET_READS; tries++) {
        if ((get(drv, ETHOS_U_STATUS) & ETHOS_U_STATUS_RESETTING) == 0u) {
            break;
        }
    }
    if ((get(drv, ETHOS_U_STATUS) & ETHOS_U_STATUS_RESETTING) != 0u ||
        (get(drv, ETHOS_U_PROT) & (ETHOS_U_PROT_CPL | ETHOS_U_PROT_CSL)) != drv->protection) {
        return -1;
    }
    for (uint32_t index = 0; index < ETHOS_U_AXI_LIMIT_COUNT; index++) {
        set(drv, ETHOS_U_AXI_LIMIT(index), AXI_LIMIT);
    }
    return 0;
}

int ethosu_soft_reset(struct ethosu_driver *drv)
{
    if (reset(drv) != 0) {
        return -1;
    }
    (void)get(drv, ETHOS_U_CMD);
    set(drv, ETHOS_U_CMD, drv->power_request_counter > 0u ? 0u : GATING);
    return 0;
}

int ethosu_init(struct ethosu_driver *drv, void *base, const void *fast, size_t fast_bytes,
                uint32_t secure, uint32_t privileged)
{
    (void)fast;
    (void)fast_bytes;
    if (mutex == NULL) {
        mutex = ethosu_mutex_create();
    }
    if (available == NULL) {
        available = ethosu_semaphore_create();
    }
    drv->power_request_counter = 0;
    drv->base = (uintptr_t)base;
    drv->protection =
        (privileged != 0u ? ETHOS_U_PROT_CPL : 0u) | (secure != 0u ? 0u : ETHOS_U_PROT_CSL);
    if (get(drv, ETHOS_U_CONFIG) >> ETHOS_U_CONFIG_PRODUCT_SHIFT != 0u || reset(drv) != 0) {
        return -1;
    }
    drv->semaphore = ethosu_semaphore_create();
    if (drv->semaphore == NULL) {
        return -1;
    }
    (void)memset(&drv->job, 0, sizeof(drv->job));
    (void)ethosu_mutex_lock(mutex);
    devices++;
    (void)ethosu_mutex_unlock(mutex);
    return ethosu_semaphore_give(available);
}

void ethosu_deinit(struct ethosu_driver *drv)
{
    (void)ethosu_mutex_lock(mutex);
    devices--;
    (void)ethosu_semaphore_take(available, FOREVER);
    (void)ethosu_mutex_unlock(mutex);
    ethosu_semaphore_destroy(drv->semaphore);
}

static int run(struct ethosu_driver *drv, const uint32_t *commands, uint32_t bytes)
{
    const struct ethosu_job *job = &drv->job;

    for (int index = 0; index < job->count; index++) {
        if (job->bases[index] % 16u != 0u) {
            return -1;
        }
    }
    ethosu_flush_dcache(job->bases, job->sizes, job->count);
    if (drv->power_request_counter++ == 0u && ethosu_soft_reset(drv) != 0) {
        drv->power_request_counter--;
        return -1;
    }
    drv->job.state = ETHOSU_JOB_RUNNING;
    set(drv, ETHOS_U_QBASE, (uint32_t)ethosu_address_remap((uintptr_t)commands, -1));
    set(drv, ETHOS_U_QSIZE, bytes);
    set(drv, ETHOS_U_QCONFIG, 2);
    for (int index = 0; index < job->count; index++) {
        set(drv, ETHOS_U_BASEP((uint32_t)index),
            (uint32_t)ethosu_address_remap(job->bases[index], index));
    }
    set(drv, ETHOS_U_REGIONCFG, 0x13u);
    set(drv, ETHOS_U_CMD, (get(drv, ETHOS_U_CMD) & GATING) | ETHOS_U_CMD_RUN);
    return 0;
}

static int is_for(const struct ethosu_driver *drv, uint32_t config, uint32_t id)
{
    const uint32_t has = get(drv, ETHOS_U_CONFIG), version = get(drv, ETHOS_U_ID);

    return ((config ^ has) & SAME_CONFIG) == 0u &&
           ((id ^ version) & ETHOS_U_ID_ARCH_MAJOR_MASK) == 0u &&
           (version & ETHOS_U_ID_ARCH_MINOR_MASK) >= (id & ETHOS_U_ID_ARCH_MINOR_MASK);
}

/* Carries out the actions of a payload. */
static int act(struct ethosu_driver *drv, const uint32_t *word, const uint32_t *end)
{
    while (word < end) {
        const uint32_t length = (*word >> 16) | ((*word & 0xff00u) << 8);

        switch (*word & 0xffu) {
        case 1:
            if (!is_for(drv, word[1], word[2])) {
                return -1;
            }
            word += 3;
            break;
        case 2:
            if (run(drv, word + 1, length * 4u) != 0) {
                return -1;
            }
            word += 1u + length;
            break;
        case 5:
            word++;
            break;
        default:
            return -1;
        }
    }
    return 0;
}

int ethosu_invoke_async(struct ethosu_driver *drv, const void *data, int bytes, uint64_t *bases,
                        const size_t *sizes, int count, void *user)
{
    const uint32_t *word = data;
    int status = -1;

    (void)user;
    if (drv->job.state != ETHOSU_JOB_IDLE) {
        return -1;
    }
    drv->job.bases = bases;
    drv->job.sizes = sizes;
    drv->job.count = count;
    if (*word == FOURCC && bytes % 4 == 0) {
        status = act(drv, word + 1, word + bytes / 4);
    }
    if (status != 0) {
        (void)memset(&drv->job, 0, sizeof(drv->job));
    }
    return status;
}

void ethosu_irq_handler(struct ethosu_driver *drv)
{
    const uint32_t over = FAULTS | ETHOS_U_STATUS_END_REACHED;
    bool is_good;

    set(drv, ETHOS_U_CMD, (get(drv, ETHOS_U_CMD) & GATING) | ETHOS_U_CMD_CLEAR_IRQ);
    is_good = (get(drv, ETHOS_U_STATUS) & over) == ETHOS_U_STATUS_END_REACHED;
    drv->job.state = ETHOSU_JOB_DONE;
    drv->job.result = is_good ? ETHOSU_JOB_RESULT_OK : ETHOSU_JOB_RESULT_ERROR;
    (void)ethosu_semaphore_give(drv->semaphore);
}

int ethosu_wait(struct ethosu_driver *drv, bool block)
{
    struct ethosu_job *job = &drv->job;
    bool is_good;

    (void)block;
    if (job->state == ETHOSU_JOB_IDLE) {
        return -2;
    }
    if (ethosu_semaphore_take(drv->semaphore, FOREVER) != 0) {
        job->result = ETHOSU_JOB_RESULT_TIMEOUT;
    }
    ethosu_invalidate_dcache(job->bases, job->sizes, job->count);
    if (--drv->power_request_counter == 0u) {
        (void)get(drv, ETHOS_U_CMD);
        set(drv, ETHOS_U_CMD, GATING);
    }
    is_good = job->result == ETHOSU_JOB_RESULT_OK;
    if (!is_good) {
        (void)ethosu_soft_reset(drv);
    }
    (void)memset(job, 0, sizeof(*job));
    return is_good ? 0 : -1;
}
