/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "fake.h"
#include "ferrule_fake_cmsis.h"

enum { SENT = FAKE_OWN_EVENT, BITS_PER_BYTE = 10, SERIAL_MASK = 0xFFFFFF };

struct usart {
    bool initialised, powered, configured, tx, rx;
    ARM_USART_SignalEvent_t signal;
    uint32_t baud;
    const uint8_t *sending; /* NULL: not */
    uint32_t send_bytes, tx_count;
    uint64_t send_began_us;
    uint32_t serial; /* of the transmission: an aborted one does not complete */
    uint8_t *receiving;
    uint32_t receive_bytes, rx_count;
    bool overflow;
    uint32_t api;
    bool synchronous_only;
};

static struct usart usarts[FERRULE_FAKE_USARTS];
static ARM_DRIVER_USART *const ACCESS[FERRULE_FAKE_USARTS] = {&Driver_USART0, &Driver_USART1,
                                                              &Driver_USART2, &Driver_USART3};

void fake_reset_objects(void);

void fake_reset_platform(void)
{
    fake_reset_objects();
    for (uint32_t number = 0; number < FERRULE_FAKE_USARTS; number++) {
        usarts[number] = (struct usart){.api = ARM_USART_API_VERSION};
    }
}

void ferrule_fake_set_usart(uint32_t number, uint32_t api, uint32_t asynchronous)
{
    usarts[number].api = api;
    usarts[number].synchronous_only = asynchronous == 0u;
}

void ferrule_fake_signal(uint32_t number, uint32_t event)
{
    if (usarts[number].signal != NULL) {
        ferrule_fake_enter_interrupt();
        usarts[number].signal(event);
        ferrule_fake_leave_interrupt();
    }
}

static ARM_DRIVER_VERSION version_of(uint32_t number)
{
    FAKE_CALL_OF(call, "GetVersion", ACCESS[number]);
    const ARM_DRIVER_VERSION version = {.api = (uint16_t)usarts[number].api, .drv = 0x100};
    call.result = version.api;
    (void)fake_end(&call);
    return version;
}

static ARM_USART_CAPABILITIES capabilities_of(uint32_t number)
{
    FAKE_CALL_OF(call, "GetCapabilities", ACCESS[number]);
    (void)fake_end(&call);
    return (ARM_USART_CAPABILITIES){.asynchronous = !usarts[number].synchronous_only};
}

/* Called when a USART was initialised or powered, or no longer is. */
static void note_power(uint32_t number)
{
    const struct usart *usart = &usarts[number];
    fake_lock();
    if (usart->initialised) {
        fake_hold(usart, "USART%u is %s", (unsigned)number,
                  usart->powered ? "powered" : "initialised");
    } else {
        fake_give_back(usart);
    }
    fake_unlock();
}

static int32_t initialise(uint32_t number, ARM_USART_SignalEvent_t cb_event)
{
    FAKE_CALL_OF(call, "Initialize", ACCESS[number], cb_event != NULL);
    if (!call.replaced) {
        usarts[number].initialised = true;
        usarts[number].signal = cb_event;
        note_power(number);
    }
    return (int32_t)fake_end(&call);
}

static void power_off(struct usart *usart)
{
    usart->powered = false;
    usart->configured = false;
    usart->tx = false;
    usart->rx = false;
    usart->sending = NULL;
    usart->receiving = NULL;
}

static int32_t uninitialise(uint32_t number)
{
    FAKE_CALL_OF(call, "Uninitialize", ACCESS[number]);
    struct usart *usart = &usarts[number];
    if (!call.replaced && usart->powered) {
        fake_misuse("Uninitialize of USART%u, which is powered", (unsigned)number);
        call.result = ARM_DRIVER_ERROR;
    } else if (!call.replaced) {
        usart->initialised = false;
        usart->signal = NULL;
        note_power(number);
    }
    return (int32_t)fake_end(&call);
}

static int32_t set_power(struct usart *usart, ARM_POWER_STATE state)
{
    if (state == ARM_POWER_LOW) {
        return ARM_DRIVER_ERROR_UNSUPPORTED;
    }
    if (state == ARM_POWER_OFF) {
        power_off(usart);
        return ARM_DRIVER_OK;
    }
    if (!usart->initialised) {
        return ARM_DRIVER_ERROR;
    }
    usart->powered = true;
    return ARM_DRIVER_OK;
}

static int32_t power(uint32_t number, ARM_POWER_STATE state)
{
    FAKE_CALL_OF(call, "PowerControl", ACCESS[number], state);
    if (!call.replaced) {
        call.result = set_power(&usarts[number], state);
        note_power(number);
    }
    return (int32_t)fake_end(&call);
}

static uint64_t us_for(const struct usart *usart, uint32_t bytes)
{
    return (uint64_t)bytes * BITS_PER_BYTE * 1000000u / usart->baud;
}

static int32_t begin_send(uint32_t number, const void *data, uint32_t bytes)
{
    struct usart *usart = &usarts[number];
    if (data == NULL || bytes == 0u) {
        return ARM_DRIVER_ERROR_PARAMETER;
    }
    if (!usart->powered || !usart->configured || !usart->tx) {
        return ARM_DRIVER_ERROR;
    }
    if (usart->sending != NULL) {
        return ARM_DRIVER_ERROR_BUSY;
    }
    usart->serial = (usart->serial + 1u) & SERIAL_MASK;
    usart->sending = data;
    usart->send_bytes = bytes;
    usart->tx_count = 0;
    usart->send_began_us = ferrule_fake_now_us();
    ferrule_fake_schedule(us_for(usart, bytes), SENT | number << 24 | usart->serial);
    return ARM_DRIVER_OK;
}

void fake_platform_event(uint32_t number)
{
    const uint32_t index = (number >> 24) % FERRULE_FAKE_USARTS;
    struct usart *usart = &usarts[index];
    if (usart->sending == NULL || usart->serial != (number & SERIAL_MASK)) {
        return;
    }
    const uint8_t *data = usart->sending;
    usart->sending = NULL;
    usart->tx_count = usart->send_bytes;
    fake_port_write(index, data, usart->send_bytes); /* read now: the buffer must still be valid */
    ferrule_fake_signal(index, ARM_USART_EVENT_SEND_COMPLETE);
}

static int32_t send(uint32_t number, const void *data, uint32_t bytes)
{
    FAKE_CALL_OF(call, "Send", ACCESS[number], bytes);
    if (!call.replaced) {
        call.result = begin_send(number, data, bytes);
    }
    return (int32_t)fake_end(&call);
}

void fake_port_received(uint32_t port)
{
    struct usart *usart = &usarts[port];
    uint8_t byte;
    while (fake_port_read(port, &byte, 1) == 1u) {
        if (!usart->powered || !usart->rx) {
            continue; /* no receive in progress */
        }
        if (usart->receiving == NULL) {
            usart->overflow = true;
            ferrule_fake_signal(port, ARM_USART_EVENT_RX_OVERFLOW);
            continue;
        }
        usart->receiving[usart->rx_count++] = byte;
        if (usart->rx_count == usart->receive_bytes) {
            usart->receiving = NULL;
            ferrule_fake_signal(port, ARM_USART_EVENT_RECEIVE_COMPLETE);
        }
    }
}

void fake_interrupts_unmasked(void)
{
    /* an arriving byte waits for the processor in ferrule_fake_enter_interrupt() */
}

static int32_t begin_receive(struct usart *usart, void *data, uint32_t bytes)
{
    if (data == NULL || bytes == 0u) {
        return ARM_DRIVER_ERROR_PARAMETER;
    }
    if (!usart->powered || !usart->configured || !usart->rx) {
        return ARM_DRIVER_ERROR;
    }
    if (usart->receiving != NULL) {
        return ARM_DRIVER_ERROR_BUSY;
    }
    usart->receiving = data;
    usart->receive_bytes = bytes;
    usart->rx_count = 0;
    usart->overflow = false;
    return ARM_DRIVER_OK;
}

static int32_t receive(uint32_t number, void *data, uint32_t bytes)
{
    FAKE_CALL_OF(call, "Receive", ACCESS[number], bytes);
    if (!call.replaced) {
        call.result = begin_receive(&usarts[number], data, bytes);
    }
    return (int32_t)fake_end(&call);
}

static int32_t transfer(uint32_t number, const void *data_out, void *data_in, uint32_t bytes)
{
    FAKE_CALL_OF(call, "Transfer", ACCESS[number], data_out != NULL, data_in != NULL, bytes);
    if (!call.replaced) {
        call.result = ARM_DRIVER_ERROR; /* for synchronous modes */
    }
    return (int32_t)fake_end(&call);
}

static uint32_t sent_bytes(const struct usart *usart)
{
    if (usart->sending == NULL) {
        return usart->tx_count;
    }
    const uint64_t us = ferrule_fake_now_us() - usart->send_began_us;
    const uint64_t bytes = us * usart->baud / (BITS_PER_BYTE * 1000000u);
    return bytes < usart->send_bytes ? (uint32_t)bytes : usart->send_bytes - 1u;
}

static uint32_t tx_count_of(uint32_t number)
{
    FAKE_CALL_OF(call, "GetTxCount", ACCESS[number]);
    if (!call.replaced) {
        call.result = sent_bytes(&usarts[number]);
    }
    return (uint32_t)fake_end(&call);
}

static uint32_t rx_count_of(uint32_t number)
{
    FAKE_CALL_OF(call, "GetRxCount", ACCESS[number]);
    if (!call.replaced) {
        call.result = usarts[number].rx_count;
    }
    return (uint32_t)fake_end(&call);
}

static int32_t abort_operations(uint32_t number, bool sending, bool receiving)
{
    struct usart *usart = &usarts[number];
    if (sending && usart->sending != NULL) {
        const uint8_t *data = usart->sending;
        usart->tx_count = sent_bytes(usart);
        usart->sending = NULL;
        fake_port_write(number, data, usart->tx_count);
    }
    if (receiving) {
        usart->receiving = NULL;
    }
    return ARM_DRIVER_OK;
}

static int32_t set_mode(struct usart *usart, uint32_t mode, uint32_t baud)
{
    if ((mode & ~ARM_USART_CONTROL_Msk) != 0u) {
        return ARM_USART_ERROR_DATA_BITS; /* these USARTs support 8N1 only */
    }
    if (usart->synchronous_only) {
        return ARM_USART_ERROR_MODE;
    }
    if (baud == 0u) {
        return ARM_USART_ERROR_BAUDRATE;
    }
    usart->baud = baud;
    usart->configured = true;
    return ARM_DRIVER_OK;
}

static int32_t set(uint32_t number, uint32_t control, uint32_t arg)
{
    struct usart *usart = &usarts[number];
    if (!usart->powered) {
        return ARM_DRIVER_ERROR;
    }
    switch (control & ARM_USART_CONTROL_Msk) {
    case ARM_USART_MODE_ASYNCHRONOUS:
        return set_mode(usart, control, arg);
    case ARM_USART_CONTROL_TX:
        usart->tx = arg != 0u;
        return ARM_DRIVER_OK;
    case ARM_USART_CONTROL_RX:
        usart->rx = arg != 0u;
        return ARM_DRIVER_OK;
    case ARM_USART_ABORT_SEND:
        return abort_operations(number, true, false);
    case ARM_USART_ABORT_RECEIVE:
        return abort_operations(number, false, true);
    case ARM_USART_ABORT_TRANSFER:
        return abort_operations(number, true, true);
    case ARM_USART_CONTROL_BREAK:
        return ARM_DRIVER_ERROR_UNSUPPORTED;
    default:
        return ARM_USART_ERROR_MODE;
    }
}

static int32_t control(uint32_t number, uint32_t operation, uint32_t arg)
{
    FAKE_CALL_OF(call, "Control", ACCESS[number], operation, arg);
    if (!call.replaced) {
        call.result = set(number, operation, arg);
    }
    return (int32_t)fake_end(&call);
}

/* A rule's result is the status as a number, with tx_busy as the lowest bit. */
static ARM_USART_STATUS status_of(uint32_t number)
{
    FAKE_CALL_OF(call, "GetStatus", ACCESS[number]);
    const struct usart *usart = &usarts[number];
    if (!call.replaced) {
        call.result =
            (usart->sending != NULL) | (usart->receiving != NULL) << 1 | usart->overflow << 3;
    }
    const int64_t bits = fake_end(&call);
    return (ARM_USART_STATUS){
        .tx_busy = (bits & 1) != 0,
        .rx_busy = (bits & 2) != 0,
        .tx_underflow = (bits & 4) != 0,
        .rx_overflow = (bits & 8) != 0,
        .rx_break = (bits & 16) != 0,
        .rx_framing_error = (bits & 32) != 0,
        .rx_parity_error = (bits & 64) != 0,
    };
}

static int32_t set_modem(uint32_t number, ARM_USART_MODEM_CONTROL line)
{
    FAKE_CALL_OF(call, "SetModemControl", ACCESS[number], line);
    if (!call.replaced) {
        call.result = ARM_DRIVER_ERROR_UNSUPPORTED;
    }
    return (int32_t)fake_end(&call);
}

static ARM_USART_MODEM_STATUS modem_of(uint32_t number)
{
    FAKE_CALL_OF(call, "GetModemStatus", ACCESS[number]);
    (void)fake_end(&call);
    return (ARM_USART_MODEM_STATUS){0};
}

/* The access struct's functions have no context argument, so each instance has its own. */
#define USART(n)                                                                                   \
    static ARM_DRIVER_VERSION GetVersion##n(void)                                                  \
    {                                                                                              \
        return version_of(n);                                                                      \
    }                                                                                              \
    static ARM_USART_CAPABILITIES GetCapabilities##n(void)                                         \
    {                                                                                              \
        return capabilities_of(n);                                                                 \
    }                                                                                              \
    static int32_t Initialize##n(ARM_USART_SignalEvent_t cb_event)                                 \
    {                                                                                              \
        return initialise(n, cb_event);                                                            \
    }                                                                                              \
    static int32_t Uninitialize##n(void)                                                           \
    {                                                                                              \
        return uninitialise(n);                                                                    \
    }                                                                                              \
    static int32_t PowerControl##n(ARM_POWER_STATE state)                                          \
    {                                                                                              \
        return power(n, state);                                                                    \
    }                                                                                              \
    static int32_t Send##n(const void *data, uint32_t num)                                         \
    {                                                                                              \
        return send(n, data, num);                                                                 \
    }                                                                                              \
    static int32_t Receive##n(void *data, uint32_t num)                                            \
    {                                                                                              \
        return receive(n, data, num);                                                              \
    }                                                                                              \
    static int32_t Transfer##n(const void *data_out, void *data_in, uint32_t num)                  \
    {                                                                                              \
        return transfer(n, data_out, data_in, num);                                                \
    }                                                                                              \
    static uint32_t GetTxCount##n(void)                                                            \
    {                                                                                              \
        return tx_count_of(n);                                                                     \
    }                                                                                              \
    static uint32_t GetRxCount##n(void)                                                            \
    {                                                                                              \
        return rx_count_of(n);                                                                     \
    }                                                                                              \
    static int32_t Control##n(uint32_t operation, uint32_t arg)                                    \
    {                                                                                              \
        return control(n, operation, arg);                                                         \
    }                                                                                              \
    static ARM_USART_STATUS GetStatus##n(void)                                                     \
    {                                                                                              \
        return status_of(n);                                                                       \
    }                                                                                              \
    static int32_t SetModemControl##n(ARM_USART_MODEM_CONTROL line)                                \
    {                                                                                              \
        return set_modem(n, line);                                                                 \
    }                                                                                              \
    static ARM_USART_MODEM_STATUS GetModemStatus##n(void)                                          \
    {                                                                                              \
        return modem_of(n);                                                                        \
    }                                                                                              \
    ARM_DRIVER_USART Driver_USART##n = {                                                           \
        GetVersion##n, GetCapabilities##n, Initialize##n,      Uninitialize##n,  PowerControl##n,  \
        Send##n,       Receive##n,         Transfer##n,        GetTxCount##n,    GetRxCount##n,    \
        Control##n,    GetStatus##n,       SetModemControl##n, GetModemStatus##n}

USART(0);
USART(1);
USART(2);
USART(3);
