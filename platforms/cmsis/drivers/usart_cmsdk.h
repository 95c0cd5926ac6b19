/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CMSIS-Driver USART (API 2.4) for the UART in Arm's Cortex-M System Design Kit (DDI 0479,
 * section 4.3), used on the MPS2 and MPS3 boards. Interrupt-driven, 8 data bits, no parity.
 *
 *   FERRULE_USART_CMSDK(0, 0x40004000u, 25000000u, 0, 1, UART0_RX_Handler, UART0_TX_Handler);
 *
 * defines `Driver_USART0` and both handlers. The driver is strict: it rejects every call made in
 * the wrong state. While no receive is in progress, an arriving byte stays in the UART.
 */
#ifndef FERRULE_USART_CMSDK_H
#define FERRULE_USART_CMSDK_H

#include <stdbool.h>
#include <stdint.h>

#include "Driver_USART.h"

#ifndef FERRULE_USART_CMSDK_PRIORITY
/** Priority of the interrupts: high enough to be served in time, low enough that handlers may call
 * the kernel.
 */
#define FERRULE_USART_CMSDK_PRIORITY ((1u << __NVIC_PRIO_BITS) - 2u)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** State of an instance. */
enum ferrule_usart_cmsdk_state {
    FERRULE_USART_CMSDK_OFF = 0,
    FERRULE_USART_CMSDK_INITIALIZED,
    FERRULE_USART_CMSDK_POWERED,
    FERRULE_USART_CMSDK_CONFIGURED,
};

/** One UART: its configuration and the driver's state. */
struct ferrule_usart_cmsdk {
    uintptr_t base;
    uint32_t clock_hz; /* of the peripheral bus */
    int32_t rx_interrupt;
    int32_t tx_interrupt;
    ARM_USART_SignalEvent_t signal;
    enum ferrule_usart_cmsdk_state state;
    const uint8_t *volatile out; /* next byte to send */
    uint8_t *volatile in;        /* destination of the next byte */
    volatile uint32_t out_left;
    volatile uint32_t in_left;
    uint32_t out_total;
    uint32_t in_total;
    volatile bool sending;   /* until the last byte has left the data register */
    volatile bool receiving; /* until the last byte is stored */
    volatile bool overflowed;
};

/* The implementations of the access struct's functions, with the instance as a parameter. */
ARM_DRIVER_VERSION ferrule_usart_cmsdk_version(void);
ARM_USART_CAPABILITIES ferrule_usart_cmsdk_capabilities(void);
int32_t ferrule_usart_cmsdk_initialize(struct ferrule_usart_cmsdk *uart,
                                       ARM_USART_SignalEvent_t signal);
int32_t ferrule_usart_cmsdk_uninitialize(struct ferrule_usart_cmsdk *uart);
int32_t ferrule_usart_cmsdk_power(struct ferrule_usart_cmsdk *uart, ARM_POWER_STATE state);
int32_t ferrule_usart_cmsdk_send(struct ferrule_usart_cmsdk *uart, const void *data, uint32_t num);
int32_t ferrule_usart_cmsdk_receive(struct ferrule_usart_cmsdk *uart, void *data, uint32_t num);
int32_t ferrule_usart_cmsdk_transfer(const void *data_out, void *data_in, uint32_t num);
int32_t ferrule_usart_cmsdk_control(struct ferrule_usart_cmsdk *uart, uint32_t control,
                                    uint32_t argument);
ARM_USART_STATUS ferrule_usart_cmsdk_status(const struct ferrule_usart_cmsdk *uart);
int32_t ferrule_usart_cmsdk_set_modem(ARM_USART_MODEM_CONTROL control);
ARM_USART_MODEM_STATUS ferrule_usart_cmsdk_modem(void);

/** @brief Called by the handlers of the two interrupts. */
void ferrule_usart_cmsdk_on_receive(struct ferrule_usart_cmsdk *uart);
void ferrule_usart_cmsdk_on_send(struct ferrule_usart_cmsdk *uart);

/** Define `Driver_USART<n>` and its interrupt handlers. */
#define FERRULE_USART_CMSDK(n, address, hz, rx_number, tx_number, rx_handler, tx_handler)          \
    static struct ferrule_usart_cmsdk usart##n = {.base = (address),                               \
                                                  .clock_hz = (hz),                                \
                                                  .rx_interrupt = (rx_number),                     \
                                                  .tx_interrupt = (tx_number)};                    \
    static int32_t usart##n##_initialize(ARM_USART_SignalEvent_t signal)                           \
    {                                                                                              \
        return ferrule_usart_cmsdk_initialize(&usart##n, signal);                                  \
    }                                                                                              \
    static int32_t usart##n##_uninitialize(void)                                                   \
    {                                                                                              \
        return ferrule_usart_cmsdk_uninitialize(&usart##n);                                        \
    }                                                                                              \
    static int32_t usart##n##_power(ARM_POWER_STATE state)                                         \
    {                                                                                              \
        return ferrule_usart_cmsdk_power(&usart##n, state);                                        \
    }                                                                                              \
    static int32_t usart##n##_send(const void *data, uint32_t num)                                 \
    {                                                                                              \
        return ferrule_usart_cmsdk_send(&usart##n, data, num);                                     \
    }                                                                                              \
    static int32_t usart##n##_receive(void *data, uint32_t num)                                    \
    {                                                                                              \
        return ferrule_usart_cmsdk_receive(&usart##n, data, num);                                  \
    }                                                                                              \
    static uint32_t usart##n##_sent(void)                                                          \
    {                                                                                              \
        return usart##n.out_total - usart##n.out_left;                                             \
    }                                                                                              \
    static uint32_t usart##n##_received(void)                                                      \
    {                                                                                              \
        return usart##n.in_total - usart##n.in_left;                                               \
    }                                                                                              \
    static int32_t usart##n##_control(uint32_t control, uint32_t argument)                         \
    {                                                                                              \
        return ferrule_usart_cmsdk_control(&usart##n, control, argument);                          \
    }                                                                                              \
    static ARM_USART_STATUS usart##n##_status(void)                                                \
    {                                                                                              \
        return ferrule_usart_cmsdk_status(&usart##n);                                              \
    }                                                                                              \
    extern ARM_DRIVER_USART Driver_USART##n;                                                       \
    ARM_DRIVER_USART Driver_USART##n = {                                                           \
        .GetVersion = ferrule_usart_cmsdk_version,                                                 \
        .GetCapabilities = ferrule_usart_cmsdk_capabilities,                                       \
        .Initialize = usart##n##_initialize,                                                       \
        .Uninitialize = usart##n##_uninitialize,                                                   \
        .PowerControl = usart##n##_power,                                                          \
        .Send = usart##n##_send,                                                                   \
        .Receive = usart##n##_receive,                                                             \
        .Transfer = ferrule_usart_cmsdk_transfer,                                                  \
        .GetTxCount = usart##n##_sent,                                                             \
        .GetRxCount = usart##n##_received,                                                         \
        .Control = usart##n##_control,                                                             \
        .GetStatus = usart##n##_status,                                                            \
        .SetModemControl = ferrule_usart_cmsdk_set_modem,                                          \
        .GetModemStatus = ferrule_usart_cmsdk_modem,                                               \
    };                                                                                             \
    void rx_handler(void);                                                                         \
    void rx_handler(void)                                                                          \
    {                                                                                              \
        ferrule_usart_cmsdk_on_receive(&usart##n);                                                 \
    }                                                                                              \
    void tx_handler(void);                                                                         \
    void tx_handler(void)                                                                          \
    {                                                                                              \
        ferrule_usart_cmsdk_on_send(&usart##n);                                                    \
    }                                                                                              \
    extern ARM_DRIVER_USART Driver_USART##n

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_USART_CMSDK_H */
