/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A stream of bytes over a CMSIS-Driver USART: for devices behind a UART, and for the link.
 *
 * CMSIS-Driver's event callback carries no context, so each USART gets a callback of its own: the
 * macro FERRULE_CMSIS_USART makes it, with the struct that it stands for. The receiver is armed all
 * the time while the USART is started, so that no answer can come too early; what arrives waits in
 * a ring until it is read.
 */
#ifndef FERRULE_PLATFORM_CMSIS_USART_H
#define FERRULE_PLATFORM_CMSIS_USART_H

#include <stdbool.h>
#include <stdint.h>

#include "Driver_USART.h"

#include "ferrule/platform/cmsis.h"
#include "ferrule/transport.h"

#ifndef FERRULE_CMSIS_RING_BYTES
#define FERRULE_CMSIS_RING_BYTES 256u /* of each USART's ring: a power of two */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** One USART; make it with FERRULE_CMSIS_USART. The first fields are the user's, the others ours.
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
    uint32_t (*now_ms)(void); /* a clock that runs by itself and wraps at 2^32 */
#endif
    volatile bool started;
    volatile bool armed; /* the driver is receiving into `incoming` */
    volatile bool sent;
    volatile bool lost; /* bytes were: nothing is stored until the reader knows */
    volatile bool told; /* that something arrived; the next byte need not signal it again */
    uint8_t incoming;
    volatile uint32_t head; /* bytes that were ever stored; the interrupt's */
    volatile uint32_t tail; /* bytes that were ever taken; the reader's */
    volatile uint8_t ring[FERRULE_CMSIS_RING_BYTES];
};

/**
 * Define a USART called `name` of file scope and its callback: `access` is the address of the
 * driver's access struct, `bits_per_second` the speed, and without a kernel `clock` a function that
 * returns milliseconds.
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
 * @brief Look whether the USART can be used, and make what it needs of the kernel. A thread, or
 * before the kernel runs. A device's bind does it for its own.
 * @retval FERRULE_ERR_ARGUMENT     a pointer is null, the driver lacks a function
 * @retval FERRULE_ERR_UNSUPPORTED  the driver has another major version, or no asynchronous mode
 * @retval FERRULE_ERR_MEMORY       the kernel has no more event flags
 */
int32_t ferrule_cmsis_usart_init(struct ferrule_cmsis_usart *usart);

/** @brief Give back what ferrule_cmsis_usart_init() made. Of a USART that is stopped; a thread. */
int32_t ferrule_cmsis_usart_release(struct ferrule_cmsis_usart *usart);

/**
 * @brief Initialize, power up, set mode and speed, switch both directions on, arm the receiver: in
 * this order. A thread. If a step fails, those before it are undone and its error is returned.
 * @retval FERRULE_ERR_UNSUPPORTED  the driver can't have this mode or speed
 */
int32_t ferrule_cmsis_usart_start(struct ferrule_cmsis_usart *usart);

/** @brief Undo ferrule_cmsis_usart_start(), all of it, and return the first error. A thread. */
int32_t ferrule_cmsis_usart_stop(struct ferrule_cmsis_usart *usart);

/** @brief What the callback calls. Interrupts, or wherever the driver signals from. */
void ferrule_cmsis_usart_event(struct ferrule_cmsis_usart *usart, uint32_t event);

/**
 * @brief The USART as drivers of devices use it. A write sends from the caller's buffer and is
 * aborted when its time is over. A read of time 0 takes what is there. After bytes were lost
 * (overflow, break, framing, parity) a read gives those before them, then FERRULE_ERR_DEVICE once.
 */
struct ferrule_transport ferrule_cmsis_usart_transport(struct ferrule_cmsis_usart *usart);

/** @brief Take a byte that has arrived, -1 if there is none: `read_byte` of a struct
 * ferrule_link_port, whose frames have checksums, so that bytes may be lost. One thread. */
int32_t ferrule_cmsis_usart_read_byte(void *usart);

/** @brief Send a byte: `write_byte` of a struct ferrule_link_port. One thread. */
void ferrule_cmsis_usart_write_byte(void *usart, uint8_t byte);

/** @brief Let other threads run until a byte has arrived, or the time is over. Without a kernel it
 * returns at once. The reading thread. */
void ferrule_cmsis_usart_wait(struct ferrule_cmsis_usart *usart, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_CMSIS_USART_H */
