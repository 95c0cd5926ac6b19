/* SPDX-License-Identifier: Apache-2.0 */
/** @file The driver of an accelerator on a serial line; docs/uart_accelerator.md describes the
 * protocol. */
#ifndef UART_WOOFLES_UART_WOOFLES_H
#define UART_WOOFLES_UART_WOOFLES_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/driver.h"
#include "ferrule/frame.h"
#include "ferrule/transport.h"
#include "woofles/command.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UART_WOOFLES_PAYLOAD   1024u /* maximum payload of a frame */
#define UART_WOOFLES_CHUNK     64u   /* maximum bytes per call of the transport */
#define UART_WOOFLES_RESIDENTS 32u   /* maximum layers with constants in the accelerator */

/** The constant part of a layer. */
struct uart_woofles_layer {
    struct woofles_command command; /* without sequence, addresses and checksum */
    const int8_t *weights;          /* NULL for ADD and MUL */
    uint32_t weights_bytes;
    const int32_t *bias;        /* may be NULL */
    const int32_t *multipliers; /* per output channel; NULL for ADD and MUL */
    const int32_t *shifts;
    uint32_t patience_ms; /* maximum time of the command itself */
};

/** Constants stored in the accelerator. */
struct uart_woofles_resident {
    const struct uart_woofles_layer *layer;
    uint32_t address; /* of its weights; the other constants follow */
};

/** One device; the context of its driver. The user sets the members up to `attempts`; the others
 * are private to the driver and start at zero. */
struct uart_woofles {
    const struct ferrule_transport *transport;
    uint32_t memory_bytes; /* size of the memory for tensors, from address 0 */
    uint32_t store_bytes;  /* size of the memory for constants, after the tensors */
    uint32_t timeout_ms;   /* for each response; at least 1 */
    uint32_t attempts;     /* for each request; at least 1 */

    bool greeted;           /* sequence numbers agree with the accelerator */
    uint16_t sequence;      /* of the last request */
    uint32_t token;         /* of the accelerator's memory; it changes when the contents are lost */
    uint32_t payload_bytes; /* maximum payload supported by both sides */
    uint32_t executed;      /* commands since the greeting */
    uint32_t repeated;      /* total number of requests sent again */
    uint32_t refusal;       /* enum uart_woofles_error of the last refusal */
    uint32_t store_used;    /* bytes of the store */
    uint32_t resident_count; /* entries of `residents` */
    struct uart_woofles_resident residents[UART_WOOFLES_RESIDENTS];
    struct ferrule_link_port port;  /* port of `line`, on `chunk` */
    struct ferrule_frame_line line; /* on `frame` */
    int32_t sent;                   /* status of the transport for the last frame */
    uint32_t chunk_bytes;
    uint32_t chunk_taken;
    uint8_t chunk[UART_WOOFLES_CHUNK];
    uint8_t frame[FERRULE_FRAME_HEADER + UART_WOOFLES_PAYLOAD + FERRULE_FRAME_TRAILER];
};

extern const struct ferrule_driver uart_woofles_driver;

/**
 * @brief Run one layer on tensors in the accelerator's memory, and wait until it is complete.
 * Constants that are not stored yet are sent first. For operators: the handle must be open.
 * @param resource_handle  the ferrule_device_t that uart_woofles_driver is bound to
 * @param input            offset in the accelerator's memory, like `second` and `output`
 * @param second           the other operand of ADD and MUL; not used by layers with weights
 * @return as ferrule_device_context()
 * @retval FERRULE_ERR_ARGUMENT  or `layer` is null
 * @retval FERRULE_ERR_MEMORY    the constants of this layer exceed the store
 * @retval FERRULE_ERR_TIMEOUT   no response, after all attempts
 * @retval FERRULE_ERR_DEVICE    the accelerator refused, or its state is inconsistent
 */
int32_t uart_woofles_execute(void *resource_handle, const struct uart_woofles_layer *layer,
                             uint32_t input, uint32_t second, uint32_t output);

#ifdef __cplusplus
}
#endif

#endif /* UART_WOOFLES_UART_WOOFLES_H */
