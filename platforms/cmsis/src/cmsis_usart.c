/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/cmsis_usart.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if (FERRULE_CMSIS_RING_BYTES & (FERRULE_CMSIS_RING_BYTES - 1u)) != 0u
#error "FERRULE_CMSIS_RING_BYTES must be a power of two"
#endif

#define RING_MASK       (FERRULE_CMSIS_RING_BYTES - 1u)
#define BYTE_TIMEOUT_MS 1000u /* for a byte of the link, which takes some milliseconds at most */
#define FLAG_RECEIVED   1u
#define FLAG_SENT       2u
#define RECEIVER_ERRORS                                                                            \
    (ARM_USART_EVENT_RX_OVERFLOW | ARM_USART_EVENT_RX_BREAK | ARM_USART_EVENT_RX_FRAMING_ERROR |   \
     ARM_USART_EVENT_RX_PARITY_ERROR)
#define EIGHT_BITS_NO_PARITY                                                                       \
    (ARM_USART_MODE_ASYNCHRONOUS | ARM_USART_DATA_BITS_8 | ARM_USART_PARITY_NONE |                 \
     ARM_USART_STOP_BITS_1 | ARM_USART_FLOW_CONTROL_NONE)

/* ---- time, and waiting for the interrupt, with and without a kernel */

#if FERRULE_CMSIS_RTOS2

static uint32_t now(const struct ferrule_cmsis_usart *usart)
{
    (void)usart;
    return osKernelGetTickCount();
}

static uint32_t duration(uint32_t milliseconds)
{
    return ferrule_cmsis_ticks(milliseconds);
}

static int32_t pause_for(struct ferrule_cmsis_usart *usart, uint32_t flag, uint32_t ticks)
{
    const uint32_t flags = osEventFlagsWait(usart->signal, flag, osFlagsWaitAny, ticks);
    if ((flags & osFlagsError) == 0u || flags == osFlagsErrorTimeout) {
        return FERRULE_OK; /* the caller checks the clock */
    }
    return ferrule_cmsis_kernel_status((osStatus_t)flags);
}

static void signal_flags(struct ferrule_cmsis_usart *usart, uint32_t flags)
{
    if ((osEventFlagsSet(usart->signal, flags) & osFlagsError) != 0u) {
        usart->told = false; /* the kernel's queue is full: the next byte tries again */
    }
}

static int32_t make_signal(struct ferrule_cmsis_usart *usart)
{
    osEventFlagsAttr_t attributes = {.name = "ferrule usart"};
#if FERRULE_CMSIS_EVENT_FLAGS_BYTES > 0
    attributes.cb_mem = usart->signal_block;
    attributes.cb_size = FERRULE_CMSIS_EVENT_FLAGS_BYTES;
#endif
    usart->signal = osEventFlagsNew(&attributes);
    return usart->signal != NULL ? FERRULE_OK : FERRULE_ERR_MEMORY;
}

static int32_t delete_signal(struct ferrule_cmsis_usart *usart)
{
    const osStatus_t status = osEventFlagsDelete(usart->signal);
    usart->signal = NULL;
    return ferrule_cmsis_kernel_status(status);
}

#else

static uint32_t now(const struct ferrule_cmsis_usart *usart)
{
    return usart->now_ms();
}

static uint32_t duration(uint32_t milliseconds)
{
    return milliseconds;
}

static int32_t pause_for(const struct ferrule_cmsis_usart *usart, uint32_t flag, uint32_t ticks)
{
    (void)usart;
    (void)flag;
    (void)ticks;
    return FERRULE_OK; /* the caller checks again */
}

static void signal_flags(const struct ferrule_cmsis_usart *usart, uint32_t flags)
{
    (void)usart;
    (void)flags;
}

static int32_t make_signal(const struct ferrule_cmsis_usart *usart)
{
    return usart->now_ms != NULL ? FERRULE_OK : FERRULE_ERR_ARGUMENT;
}

static int32_t delete_signal(const struct ferrule_cmsis_usart *usart)
{
    (void)usart;
    return FERRULE_OK;
}

#endif

/* ---- the ring: one interrupt writes, one thread reads */

static bool has_room(const struct ferrule_cmsis_usart *usart)
{
    return usart->head - usart->tail < FERRULE_CMSIS_RING_BYTES;
}

/* The ring has space: otherwise the receiver would not have been armed. */
static void store(struct ferrule_cmsis_usart *usart, uint8_t byte)
{
    const uint32_t head = usart->head;
    if (!usart->lost) {
        usart->ring[head & RING_MASK] = byte;
        usart->head = head + 1u;
    }
}

static bool take(struct ferrule_cmsis_usart *usart, uint8_t *byte)
{
    const uint32_t tail = usart->tail;
    if (usart->head == tail) {
        return false;
    }
    *byte = usart->ring[tail & RING_MASK];
    usart->tail = tail + 1u;
    return true;
}

/* Let the driver receive the next byte; the callback reports it. */
static int32_t arm(struct ferrule_cmsis_usart *usart)
{
    usart->armed = true; /* before the call: the byte may already be there */
    const int32_t code = usart->driver->Receive(&usart->incoming, 1u);
    if (code != ARM_DRIVER_OK) {
        usart->armed = false;
    }
    return ferrule_cmsis_driver_status(code);
}

/* Called by the reader after taking bytes: the receiver is disarmed while the ring is full, and
 * after an error of the driver. */
static int32_t rearm(struct ferrule_cmsis_usart *usart)
{
    return usart->armed || !has_room(usart) ? FERRULE_OK : arm(usart);
}

void ferrule_cmsis_usart_event(struct ferrule_cmsis_usart *usart, uint32_t event)
{
    uint32_t flags = 0;
    const uint32_t received = usart->told ? 0u : FLAG_RECEIVED;
    if ((event & RECEIVER_ERRORS) != 0u) {
        usart->lost = true;
        flags |= received;
    }
    if ((event & ARM_USART_EVENT_RECEIVE_COMPLETE) != 0u) {
        store(usart, usart->incoming);
        usart->armed = false;
        (void)rearm(usart); /* if it fails, the reader tries again and gets the error */
        flags |= received;
    }
    if ((event & ARM_USART_EVENT_SEND_COMPLETE) != 0u) {
        usart->sent = true;
        flags |= FLAG_SENT;
    }
    if (flags != 0u) { /* not for each byte: kernels can queue few signals from interrupts */
        usart->told = usart->told || (flags & FLAG_RECEIVED) != 0u;
        signal_flags(usart, flags);
    }
}

/* ---- the driver, from uninitialised to armed and back */

static bool is_whole(const ARM_DRIVER_USART *driver)
{
    return driver->GetVersion != NULL && driver->GetCapabilities != NULL &&
           driver->Initialize != NULL && driver->Uninitialize != NULL &&
           driver->PowerControl != NULL && driver->Send != NULL && driver->Receive != NULL &&
           driver->Control != NULL && driver->GetStatus != NULL;
}

int32_t ferrule_cmsis_usart_init(struct ferrule_cmsis_usart *usart)
{
    if (usart == NULL || usart->driver == NULL || usart->on_event == NULL ||
        !is_whole(usart->driver)) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (usart->driver->GetVersion().api >> 8 != ARM_USART_API_VERSION >> 8 ||
        usart->driver->GetCapabilities().asynchronous == 0u) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    usart->started = false;
    usart->armed = false;
    return make_signal(usart);
}

int32_t ferrule_cmsis_usart_release(struct ferrule_cmsis_usart *usart)
{
    return delete_signal(usart);
}

/* One step of the start; driver-specific codes report the unsupported part of the mode. */
static int32_t control(ARM_DRIVER_USART *driver, uint32_t operation, uint32_t argument)
{
    const int32_t code = driver->Control(operation, argument);
    return code <= ARM_DRIVER_ERROR_SPECIFIC ? FERRULE_ERR_UNSUPPORTED
                                             : ferrule_cmsis_driver_status(code);
}

static int32_t configure(struct ferrule_cmsis_usart *usart)
{
    int32_t status = control(usart->driver, EIGHT_BITS_NO_PARITY, usart->baud);
    if (status == FERRULE_OK) {
        status = control(usart->driver, ARM_USART_CONTROL_TX, 1u);
    }
    if (status == FERRULE_OK) {
        status = control(usart->driver, ARM_USART_CONTROL_RX, 1u);
    }
    if (status == FERRULE_OK) {
        status = arm(usart);
    }
    return status;
}

static int32_t power_down(ARM_DRIVER_USART *driver)
{
    int32_t code = driver->PowerControl(ARM_POWER_OFF);
    if (code == ARM_DRIVER_OK) { /* a powered driver must not be uninitialised */
        code = driver->Uninitialize();
    }
    return code;
}

int32_t ferrule_cmsis_usart_start(struct ferrule_cmsis_usart *usart)
{
    ARM_DRIVER_USART *driver = usart->driver;
    usart->head = 0;
    usart->tail = 0;
    usart->lost = false;
    usart->told = false;
    int32_t status = ferrule_cmsis_driver_status(driver->Initialize(usart->on_event));
    if (status != FERRULE_OK) {
        return status;
    }
    status = ferrule_cmsis_driver_status(driver->PowerControl(ARM_POWER_FULL));
    if (status == FERRULE_OK) {
        status = configure(usart);
    }
    if (status != FERRULE_OK) {
        (void)power_down(driver); /* the first error is returned */
        return status;
    }
    usart->started = true;
    return FERRULE_OK;
}

static int32_t first_of(int32_t first, int32_t second)
{
    return first != ARM_DRIVER_OK ? first : second;
}

int32_t ferrule_cmsis_usart_stop(struct ferrule_cmsis_usart *usart)
{
    ARM_DRIVER_USART *driver = usart->driver;
    int32_t code = driver->Control(ARM_USART_ABORT_RECEIVE, 0u);
    code = first_of(code, driver->Control(ARM_USART_CONTROL_TX, 0u));
    code = first_of(code, driver->Control(ARM_USART_CONTROL_RX, 0u));
    code = first_of(code, power_down(driver));
    usart->started = false;
    usart->armed = false;
    return ferrule_cmsis_driver_status(code);
}

/* ---- the public functions */

static int32_t send_all(struct ferrule_cmsis_usart *usart, const uint8_t *data, uint32_t bytes,
                        uint32_t timeout_ms)
{
    const uint32_t begin = now(usart);
    const uint32_t most = duration(timeout_ms);
    usart->sent = false;
    int32_t status = ferrule_cmsis_driver_status(usart->driver->Send(data, bytes));
    if (status != FERRULE_OK) {
        return status;
    }
    while (!usart->sent) {
        const uint32_t passed = now(usart) - begin;
        status = passed < most ? pause_for(usart, FLAG_SENT, most - passed) : FERRULE_ERR_TIMEOUT;
        if (status != FERRULE_OK) {
            /* The caller owns the buffer: the driver must stop using it. */
            (void)usart->driver->Control(ARM_USART_ABORT_SEND, 0u);
            return status;
        }
    }
    return FERRULE_OK;
}

static int32_t transport_write(void *context, const uint8_t *data, size_t bytes,
                               uint32_t timeout_ms)
{
    struct ferrule_cmsis_usart *usart = (struct ferrule_cmsis_usart *)context;
    if (data == NULL && bytes != 0u) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (!usart->started) {
        return FERRULE_ERR_STATE;
    }
    return bytes == 0u ? FERRULE_OK : send_all(usart, data, (uint32_t)bytes, timeout_ms);
}

static int32_t receive_all(struct ferrule_cmsis_usart *usart, uint8_t *data, size_t bytes,
                           uint32_t timeout_ms, size_t *received)
{
    const uint32_t begin = now(usart);
    const uint32_t most = duration(timeout_ms);
    for (;;) {
        usart->told = false;           /* before checking: a later byte wakes this thread */
        const bool lost = usart->lost; /* before taking: the ring's bytes precede the loss */
        while (*received < bytes && take(usart, &data[*received])) {
            (*received)++;
        }
        int32_t status = rearm(usart);
        if (*received == bytes) {
            return FERRULE_OK;
        }
        if (lost) {
            usart->lost = false;
            return FERRULE_ERR_DEVICE;
        }
        const uint32_t passed = now(usart) - begin;
        if (status == FERRULE_OK) {
            status = passed < most ? pause_for(usart, FLAG_RECEIVED, most - passed)
                                   : FERRULE_ERR_TIMEOUT;
        }
        if (status != FERRULE_OK) {
            return status;
        }
    }
}

static int32_t transport_read(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
                              size_t *received)
{
    struct ferrule_cmsis_usart *usart = (struct ferrule_cmsis_usart *)context;
    if (received == NULL || (data == NULL && bytes != 0u)) {
        return FERRULE_ERR_ARGUMENT;
    }
    *received = 0;
    if (!usart->started) {
        return FERRULE_ERR_STATE;
    }
    return receive_all(usart, data, bytes, timeout_ms, received);
}

struct ferrule_transport ferrule_cmsis_usart_transport(struct ferrule_cmsis_usart *usart)
{
    const struct ferrule_transport transport = {
        .write = transport_write, .read = transport_read, .context = usart};
    return transport;
}

int32_t ferrule_cmsis_usart_read_byte(void *context)
{
    struct ferrule_cmsis_usart *usart = (struct ferrule_cmsis_usart *)context;
    uint8_t byte = 0;
    const bool taken = take(usart, &byte);
    if (!taken) {
        usart->lost = false; /* detected by the frame's checksum */
    }
    (void)rearm(usart); /* if it fails, the next call tries again */
    return taken ? (int32_t)byte : -1;
}

void ferrule_cmsis_usart_write_byte(void *context, uint8_t byte)
{
    struct ferrule_cmsis_usart *usart = (struct ferrule_cmsis_usart *)context;
    (void)send_all(usart, &byte, 1u, BYTE_TIMEOUT_MS); /* detected by the frame's checksum */
}

void ferrule_cmsis_usart_wait(struct ferrule_cmsis_usart *usart, uint32_t timeout_ms)
{
    usart->told = false; /* before checking: a later byte wakes this thread */
    if (usart->head == usart->tail) {
        (void)pause_for(usart, FLAG_RECEIVED, duration(timeout_ms)); /* the caller checks */
    }
}
