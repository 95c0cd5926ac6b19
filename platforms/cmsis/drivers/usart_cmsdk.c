/* SPDX-License-Identifier: Apache-2.0 */
#include "usart_cmsdk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "RTE_Components.h"
#include CMSIS_device_header

#include "ferrule/port.h"

#define DRIVER_VERSION ARM_DRIVER_VERSION_MAJOR_MINOR(1, 0)

#define DATA     0x00u
#define STATE    0x04u
#define CTRL     0x08u
#define INTCLEAR 0x0Cu
#define BAUDDIV  0x10u

#define STATE_TX_FULL     (1u << 0)
#define STATE_RX_FULL     (1u << 1)
#define STATE_RX_OVERRUN  (1u << 3) /* cleared by writing 1 */
#define CTRL_TX_ENABLE    (1u << 0)
#define CTRL_RX_ENABLE    (1u << 1)
#define CTRL_TX_INTERRUPT (1u << 2)
#define CTRL_RX_INTERRUPT (1u << 3)
#define INTERRUPT_TX      (1u << 0)
#define INTERRUPT_RX      (1u << 1)
#define INTERRUPT_ALL     0xFu
#define BAUDDIV_SMALLEST  16u
#define BAUDDIV_LARGEST   ((1u << 20) - 1u)

static uint32_t read_register(const struct ferrule_usart_cmsdk *uart, uint32_t offset)
{
    return ferrule_mmio_read32(uart->base + offset);
}

static void write_register(const struct ferrule_usart_cmsdk *uart, uint32_t offset, uint32_t value)
{
    ferrule_mmio_write32(uart->base + offset, value);
}

/* Call only with the interrupt of that direction off. The other direction's handler changes CTRL
 * only through this function, and a handler always ends before a thread continues. */
static void change_control(const struct ferrule_usart_cmsdk *uart, uint32_t clear, uint32_t set)
{
    const uint32_t primask = __get_PRIMASK();
    __disable_irq();
    write_register(uart, CTRL, (read_register(uart, CTRL) & ~clear) | set);
    __set_PRIMASK(primask);
}

static void notify(const struct ferrule_usart_cmsdk *uart, uint32_t event)
{
    if (uart->signal != NULL) {
        uart->signal(event);
    }
}

ARM_DRIVER_VERSION ferrule_usart_cmsdk_version(void)
{
    const ARM_DRIVER_VERSION version = {.api = ARM_USART_API_VERSION, .drv = DRIVER_VERSION};
    return version;
}

ARM_USART_CAPABILITIES ferrule_usart_cmsdk_capabilities(void)
{
    const ARM_USART_CAPABILITIES capabilities = {.asynchronous = 1u};
    return capabilities;
}

_Static_assert(FERRULE_USART_CMSDK_OFF == 0, "an instance is off until it is initialised");

int32_t ferrule_usart_cmsdk_initialize(struct ferrule_usart_cmsdk *uart,
                                       ARM_USART_SignalEvent_t signal)
{
    if (uart->state == FERRULE_USART_CMSDK_OFF) {
        uart->state = FERRULE_USART_CMSDK_INITIALIZED;
        uart->signal = signal;
    }
    return ARM_DRIVER_OK; /* a second call does nothing, as CMSIS-Driver requires */
}

static void stop(struct ferrule_usart_cmsdk *uart)
{
    NVIC_DisableIRQ((IRQn_Type)uart->rx_interrupt);
    NVIC_DisableIRQ((IRQn_Type)uart->tx_interrupt);
    write_register(uart, CTRL, 0u);
    write_register(uart, INTCLEAR, INTERRUPT_ALL);
    NVIC_ClearPendingIRQ((IRQn_Type)uart->rx_interrupt);
    NVIC_ClearPendingIRQ((IRQn_Type)uart->tx_interrupt);
    uart->sending = false;
    uart->receiving = false;
}

static void start(struct ferrule_usart_cmsdk *uart)
{
    uart->out_total = 0;
    uart->out_left = 0;
    uart->in_total = 0;
    uart->in_left = 0;
    uart->overflowed = false;
    stop(uart);
    NVIC_SetPriority((IRQn_Type)uart->rx_interrupt, FERRULE_USART_CMSDK_PRIORITY);
    NVIC_SetPriority((IRQn_Type)uart->tx_interrupt, FERRULE_USART_CMSDK_PRIORITY);
    NVIC_EnableIRQ((IRQn_Type)uart->rx_interrupt);
    NVIC_EnableIRQ((IRQn_Type)uart->tx_interrupt);
}

int32_t ferrule_usart_cmsdk_power(struct ferrule_usart_cmsdk *uart, ARM_POWER_STATE state)
{
    switch (state) {
    case ARM_POWER_OFF:
        if (uart->state > FERRULE_USART_CMSDK_INITIALIZED) {
            stop(uart);
            uart->state = FERRULE_USART_CMSDK_INITIALIZED;
        }
        return ARM_DRIVER_OK;
    case ARM_POWER_FULL:
        if (uart->state == FERRULE_USART_CMSDK_OFF) {
            return ARM_DRIVER_ERROR;
        }
        if (uart->state == FERRULE_USART_CMSDK_INITIALIZED) {
            start(uart);
            uart->state = FERRULE_USART_CMSDK_POWERED;
        }
        return ARM_DRIVER_OK;
    default:
        return ARM_DRIVER_ERROR_UNSUPPORTED;
    }
}

int32_t ferrule_usart_cmsdk_uninitialize(struct ferrule_usart_cmsdk *uart)
{
    (void)ferrule_usart_cmsdk_power(uart, ARM_POWER_OFF); /* always possible */
    uart->state = FERRULE_USART_CMSDK_OFF;
    uart->signal = NULL;
    return ARM_DRIVER_OK;
}

static bool is_on(const struct ferrule_usart_cmsdk *uart, uint32_t direction)
{
    return uart->state == FERRULE_USART_CMSDK_CONFIGURED &&
           (read_register(uart, CTRL) & direction) != 0u;
}

int32_t ferrule_usart_cmsdk_send(struct ferrule_usart_cmsdk *uart, const void *data, uint32_t num)
{
    if (data == NULL || num == 0u) {
        return ARM_DRIVER_ERROR_PARAMETER;
    }
    if (!is_on(uart, CTRL_TX_ENABLE)) {
        return ARM_DRIVER_ERROR;
    }
    if (uart->sending) {
        return ARM_DRIVER_ERROR_BUSY;
    }
    uart->out = data;
    uart->out_total = num;
    uart->out_left = num;
    uart->sending = true;
    change_control(uart, 0u, CTRL_TX_INTERRUPT);
    NVIC_SetPendingIRQ((IRQn_Type)uart->tx_interrupt); /* the handler also writes the first byte */
    return ARM_DRIVER_OK;
}

void ferrule_usart_cmsdk_on_send(struct ferrule_usart_cmsdk *uart)
{
    write_register(uart, INTCLEAR, INTERRUPT_TX);
    if (!uart->sending || (read_register(uart, STATE) & STATE_TX_FULL) != 0u) {
        return; /* aborted, or the interrupt recurs when there is space */
    }
    if (uart->out_left != 0u) {
        const uint8_t *from = uart->out;
        uart->out = from + 1;
        uart->out_left--;
        write_register(uart, DATA, *from);
        return;
    }
    change_control(uart, CTRL_TX_INTERRUPT, 0u);
    uart->sending = false;
    notify(uart, ARM_USART_EVENT_SEND_COMPLETE);
}

int32_t ferrule_usart_cmsdk_receive(struct ferrule_usart_cmsdk *uart, void *data, uint32_t num)
{
    if (data == NULL || num == 0u) {
        return ARM_DRIVER_ERROR_PARAMETER;
    }
    if (!is_on(uart, CTRL_RX_ENABLE)) {
        return ARM_DRIVER_ERROR;
    }
    if (uart->receiving) {
        return ARM_DRIVER_ERROR_BUSY;
    }
    uart->in = data;
    uart->in_total = num;
    uart->in_left = num;
    uart->overflowed = false;
    uart->receiving = true;
    change_control(uart, 0u, CTRL_RX_INTERRUPT);
    if ((read_register(uart, STATE) & STATE_RX_FULL) != 0u) {
        /* The byte arrived while no receive was in progress, so without an interrupt. */
        NVIC_SetPendingIRQ((IRQn_Type)uart->rx_interrupt);
    }
    return ARM_DRIVER_OK;
}

static uint32_t take_overrun(struct ferrule_usart_cmsdk *uart, uint32_t state)
{
    if ((state & STATE_RX_OVERRUN) == 0u) {
        return 0u;
    }
    write_register(uart, STATE, STATE_RX_OVERRUN);
    uart->overflowed = true;
    return ARM_USART_EVENT_RX_OVERFLOW;
}

void ferrule_usart_cmsdk_on_receive(struct ferrule_usart_cmsdk *uart)
{
    write_register(uart, INTCLEAR, INTERRUPT_RX);
    const uint32_t state = read_register(uart, STATE);
    if (!uart->receiving || (state & STATE_RX_FULL) == 0u) {
        return; /* aborted, or already taken */
    }
    uint32_t event = take_overrun(uart, state);
    uint8_t *to = uart->in;
    *to = (uint8_t)read_register(uart, DATA);
    uart->in = to + 1;
    uart->in_left--;
    if (uart->in_left == 0u) {
        change_control(uart, CTRL_RX_INTERRUPT, 0u);
        uart->receiving = false;
        event |= ARM_USART_EVENT_RECEIVE_COMPLETE;
    }
    if (event != 0u) {
        notify(uart, event);
    }
}

int32_t ferrule_usart_cmsdk_transfer(const void *data_out, void *data_in, uint32_t num)
{
    (void)data_out;
    (void)data_in;
    (void)num;
    return ARM_DRIVER_ERROR_UNSUPPORTED; /* only in synchronous modes */
}

/* The reason why a mode is not supported, or ARM_DRIVER_OK. */
static int32_t judge(uint32_t mode)
{
    if ((mode & ARM_USART_DATA_BITS_Msk) != ARM_USART_DATA_BITS_8) {
        return ARM_USART_ERROR_DATA_BITS;
    }
    if ((mode & ARM_USART_PARITY_Msk) != ARM_USART_PARITY_NONE) {
        return ARM_USART_ERROR_PARITY;
    }
    if ((mode & ARM_USART_STOP_BITS_Msk) != ARM_USART_STOP_BITS_1) {
        return ARM_USART_ERROR_STOP_BITS;
    }
    if ((mode & ARM_USART_FLOW_CONTROL_Msk) != ARM_USART_FLOW_CONTROL_NONE) {
        return ARM_USART_ERROR_FLOW_CONTROL;
    }
    return ARM_DRIVER_OK;
}

static int32_t configure(struct ferrule_usart_cmsdk *uart, uint32_t mode, uint32_t baud)
{
    const int32_t verdict = judge(mode);
    if (verdict != ARM_DRIVER_OK) {
        return verdict;
    }
    const uint32_t divider = baud != 0u ? uart->clock_hz / baud : 0u;
    if (divider < BAUDDIV_SMALLEST || divider > BAUDDIV_LARGEST) {
        return ARM_USART_ERROR_BAUDRATE;
    }
    write_register(uart, BAUDDIV, divider);
    uart->state = FERRULE_USART_CMSDK_CONFIGURED;
    return ARM_DRIVER_OK;
}

static void abort_send(struct ferrule_usart_cmsdk *uart)
{
    uart->sending = false; /* first: an interrupt that arrives in between is ignored */
    change_control(uart, CTRL_TX_INTERRUPT, 0u);
}

static void abort_receive(struct ferrule_usart_cmsdk *uart)
{
    uart->receiving = false; /* likewise first */
    change_control(uart, CTRL_RX_INTERRUPT, 0u);
}

static int32_t operate(struct ferrule_usart_cmsdk *uart, uint32_t operation, uint32_t argument)
{
    switch (operation) {
    case ARM_USART_CONTROL_TX:
        change_control(uart, CTRL_TX_ENABLE, argument != 0u ? CTRL_TX_ENABLE : 0u);
        return ARM_DRIVER_OK;
    case ARM_USART_CONTROL_RX:
        change_control(uart, CTRL_RX_ENABLE, argument != 0u ? CTRL_RX_ENABLE : 0u);
        return ARM_DRIVER_OK;
    case ARM_USART_ABORT_SEND:
        abort_send(uart);
        return ARM_DRIVER_OK;
    case ARM_USART_ABORT_RECEIVE:
        abort_receive(uart);
        return ARM_DRIVER_OK;
    default:
        return ARM_DRIVER_ERROR_UNSUPPORTED;
    }
}

int32_t ferrule_usart_cmsdk_control(struct ferrule_usart_cmsdk *uart, uint32_t control,
                                    uint32_t argument)
{
    const uint32_t operation = control & ARM_USART_CONTROL_Msk;
    if (uart->state < FERRULE_USART_CMSDK_POWERED) {
        return ARM_DRIVER_ERROR;
    }
    if (operation != ARM_USART_MODE_ASYNCHRONOUS) {
        return operation > ARM_USART_MODE_ASYNCHRONOUS && operation <= ARM_USART_MODE_SMART_CARD
                   ? ARM_USART_ERROR_MODE
                   : operate(uart, operation, argument);
    }
    return uart->sending || uart->receiving ? ARM_DRIVER_ERROR_BUSY
                                            : configure(uart, control, argument);
}

ARM_USART_STATUS ferrule_usart_cmsdk_status(const struct ferrule_usart_cmsdk *uart)
{
    const ARM_USART_STATUS status = {
        .tx_busy = uart->sending ? 1u : 0u,
        .rx_busy = uart->receiving ? 1u : 0u,
        .rx_overflow = uart->overflowed ? 1u : 0u,
    };
    return status;
}

int32_t ferrule_usart_cmsdk_set_modem(ARM_USART_MODEM_CONTROL control)
{
    (void)control;
    return ARM_DRIVER_ERROR_UNSUPPORTED; /* the UART has no such lines */
}

ARM_USART_MODEM_STATUS ferrule_usart_cmsdk_modem(void)
{
    const ARM_USART_MODEM_STATUS none = {.cts = 0u};
    return none;
}
