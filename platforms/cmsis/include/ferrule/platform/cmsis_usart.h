/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A byte stream over a CMSIS-Driver USART, for devices on a UART and for the link.
 *
 * CMSIS-Driver's event callback has no context argument, so each USART has its own callback, which
 * the macro FERRULE_CMSIS_USART defines together with the USART's struct. The receiver is always
 * armed while the USART is started, so no response can arrive too early; received bytes are stored
 * in a ring until they are read.
 */
#ifndef FERRULE_PLATFORM_CMSIS_USART_H
#define FERRULE_PLATFORM_CMSIS_USART_H

#include <stdbool.h>
#include <stdint.h>

#include "Driver_USART.h"

#include "ferrule/platform/cmsis.h"
#include "ferrule/transport.h"

#ifndef FERRULE_CMSIS_RING_BYTES
#define FERRULE_CMSIS_RING_BYTES 256u /* size of each USART's ring: a power of two */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** One USART; define it with FERRULE_CMSIS_USART. The user sets the configuration fields; the
 * others are private to the adapter.
 */
struct ferrule_cmsis_usart {
    ARM_DRIVER_USART *driver;         /* such as &Driver_USART0 */
    ARM_USART_SignalEvent_t on_event; /* calls ferrule_cmsis_usart_event() with this struct */
    uint32_t baud;                    /* bits per second; 8 data bits, no parity, 1 stop bit */
#if FERRULE_CMSIS_RTOS2
    osEventFlagsId_t signal;
#if FERRULE_CMSIS_EVENT_FLAGS_BYTES > 0
    uint64_t signal_block[(FERRULE_CMSIS_EVENT_FLAGS_BYTES + 7) / 8];
#endif
#else
    uint32_t (*now_ms)(void); /* a free-running clock that wraps at 2^32 */
#endif
    volatile bool started;
    volatile bool armed; /* the driver is receiving into `incoming` */
    volatile bool sent;
    volatile bool lost; /* bytes were lost: none is stored until the reader knows */
    volatile bool told; /* arrival was signalled; the next byte need not signal it again */
    uint8_t incoming;
    volatile uint32_t head; /* bytes stored in total; written by the interrupt */
    volatile uint32_t tail; /* bytes taken in total; written by the reader */
    volatile uint8_t ring[FERRULE_CMSIS_RING_BYTES];
};

/**
 * Define a USART called `name` at file scope, and its callback. `access` is the address of the
 * driver's access struct and `bits_per_second` the baud rate; without a kernel, `clock` is a
 * function that returns milliseconds.
 */
#if FERRULE_CMSIS_RTOS2
#define FERRULE_CMSIS_USART(name, access, bits_per_second)                                         \
    static void name##_on_event(uint32_t event);                                                   \
    static struct ferrule_cmsis_usart name = {                                                     \
        .driver = (access), .on_event = name##_on_event, .baud = (bits_per_second)};               \
    static void name##_on_event(uint32_t event)                                                    \
    {                                                                                              \
        ferrule_cmsis_usart_event(&name, event);                                                   \
    }                                                                                              \
    extern struct ferrule_cmsis_usart name##_needs_a_semicolon
#else
#define FERRULE_CMSIS_USART(name, access, bits_per_second, clock)                                  \
    static void name##_on_event(uint32_t event);                                                   \
    static struct ferrule_cmsis_usart name = {.driver = (access),                                  \
                                              .on_event = name##_on_event,                         \
                                              .baud = (bits_per_second),                           \
                                              .now_ms = (clock)};                                  \
    static void name##_on_event(uint32_t event)                                                    \
    {                                                                                              \
        ferrule_cmsis_usart_event(&name, event);                                                   \
    }                                                                                              \
    extern struct ferrule_cmsis_usart name##_needs_a_semicolon
#endif

/**
 * @brief Check that the USART can be used, and create the kernel objects that it needs. In a
 * thread, or before the kernel runs. Binding a device calls this for the device's USART.
 * @retval FERRULE_ERR_ARGUMENT     a pointer is null, or the driver lacks a function
 * @retval FERRULE_ERR_UNSUPPORTED  the driver has another major version, or no asynchronous mode
 * @retval FERRULE_ERR_MEMORY       the kernel has no event flags left
 */
int32_t ferrule_cmsis_usart_init(struct ferrule_cmsis_usart *usart);

/** @brief Release the kernel objects of ferrule_cmsis_usart_init(). The USART must be stopped; in a
 * thread. */
int32_t ferrule_cmsis_usart_release(struct ferrule_cmsis_usart *usart);

/**
 * @brief Initialize, power up, set mode and baud rate, enable both directions and arm the receiver,
 * in this order. In a thread. If a step fails, the earlier steps are undone and its error is
 * returned.
 * @retval FERRULE_ERR_UNSUPPORTED  the driver does not support this mode or baud rate
 */
int32_t ferrule_cmsis_usart_start(struct ferrule_cmsis_usart *usart);

/** @brief Undo every step of ferrule_cmsis_usart_start(), and return the first error. In a thread.
 */
int32_t ferrule_cmsis_usart_stop(struct ferrule_cmsis_usart *usart);

/** @brief Handle a driver event; called by the callback. In interrupts, or in any context from
 * which the driver signals. */
void ferrule_cmsis_usart_event(struct ferrule_cmsis_usart *usart, uint32_t event);

/**
 * @brief Return a transport for device drivers. A write sends from the caller's buffer and is
 * aborted when its time expires. A read with time 0 returns the bytes already received. After bytes
 * were lost (overflow, break, framing, parity), reads return the bytes before the loss, then
 * FERRULE_ERR_DEVICE once.
 */
struct ferrule_transport ferrule_cmsis_usart_transport(struct ferrule_cmsis_usart *usart);

/** @brief Return a received byte, or -1 if there is none: the `read_byte` function of a struct
 * ferrule_link_port. Lost bytes are not reported, because the frames have checksums. One thread. */
int32_t ferrule_cmsis_usart_read_byte(void *usart);

/** @brief Send a byte: the `write_byte` function of a struct ferrule_link_port. One thread. */
void ferrule_cmsis_usart_write_byte(void *usart, uint8_t byte);

/** @brief Let other threads run until a byte has arrived or the time has expired. Returns
 * immediately without a kernel. The reading thread. */
void ferrule_cmsis_usart_wait(struct ferrule_cmsis_usart *usart, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_CMSIS_USART_H */
