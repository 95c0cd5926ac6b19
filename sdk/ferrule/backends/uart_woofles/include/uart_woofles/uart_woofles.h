/* SPDX-License-Identifier: Apache-2.0 */
/** @file The driver of an accelerator behind a serial line; docs/uart_accelerator.md has the
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

#define UART_WOOFLES_PAYLOAD   1024u /* most bytes of a frame's payload */
#define UART_WOOFLES_CHUNK     64u   /* most bytes of one call of the transport */
#define UART_WOOFLES_RESIDENTS 32u   /* most layers whose constants the accelerator keeps */

/** The part of a layer that is known beforehand. */
struct uart_woofles_layer {
    struct woofles_command command; /* without sequence, addresses and checksum */
    const int8_t *weights;          /* NULL for ADD and MUL */
    uint32_t weights_bytes;
    const int32_t *bias;        /* may be NULL */
    const int32_t *multipliers; /* per output channel; NULL for ADD and MUL */
    const int32_t *shifts;
    uint32_t patience_ms; /* that the command itself may take */
};

/** Constants that the accelerator has. */
struct uart_woofles_resident {
    const struct uart_woofles_layer *layer;
    uint32_t address; /* of its weights; the other constants follow */
};

/** One device; the context of its driver. The user sets the first members, the others are the
 * driver's and begin as zeros. */
struct uart_woofles {
    const struct ferrule_transport *transport;
    uint32_t memory_bytes; /* of the accelerator's memory, from 0 on: tensors */
    uint32_t store_bytes;  /* behind them: constants */
    uint32_t timeout_ms;   /* for each answer; at least 1 */
    uint32_t attempts;     /* for each request; at least 1 */

    bool greeted;            /* the accelerator and this driver count requests alike */
    uint16_t sequence;       /* of the last request */
    uint32_t token;          /* of the accelerator's memory; another one: it is empty */
    uint32_t payload_bytes;  /* most bytes of a payload that both can have */
    uint32_t executed;       /* commands since the greeting */
    uint32_t repeated;       /* requests that were sent once more, ever */
    uint32_t refusal;        /* enum uart_woofles_error of the last refusal */
    uint32_t store_used;     /* bytes of the store */
    uint32_t resident_count; /* entries of `residents` */
    struct uart_woofles_resident residents[UART_WOOFLES_RESIDENTS];
    struct ferrule_link_port port;  /* of `line`: the chunks below */
    struct ferrule_frame_line line; /* on `frame` */
    int32_t sent;                   /* what the transport said of the last frame */
    uint32_t chunk_bytes;
    uint32_t chunk_taken;
    uint8_t chunk[UART_WOOFLES_CHUNK];
    uint8_t frame[FERRULE_FRAME_HEADER + UART_WOOFLES_PAYLOAD + FERRULE_FRAME_TRAILER];
};

extern const struct ferrule_driver uart_woofles_driver;

/**
 * @brief Run one layer on tensors in the accelerator's memory, and wait until it is done. Constants
 * that it does not have are sent before. For operators: the handle must be open.
 * @param resource_handle  the ferrule_device_t that uart_woofles_driver is bound to
 * @param input            offset in the accelerator's memory, as `second` and `output`
 * @param second           the other operand of ADD and MUL; not used by layers with weights
 * @return as ferrule_device_context()
 * @retval FERRULE_ERR_ARGUMENT  or `layer` is null
 * @retval FERRULE_ERR_MEMORY    the constants of this layer alone are too large
 * @retval FERRULE_ERR_TIMEOUT   no answer, after all attempts
 * @retval FERRULE_ERR_DEVICE    it refused, or what it says does not fit together
 */
int32_t uart_woofles_execute(void *resource_handle, const struct uart_woofles_layer *layer,
                             uint32_t input, uint32_t second, uint32_t output);

#ifdef __cplusplus
}
#endif

#endif /* UART_WOOFLES_UART_WOOFLES_H */
