/* SPDX-License-Identifier: Apache-2.0 */
/** @file One request and its response; private to the driver. */
#ifndef UART_WOOFLES_REQUEST_H
#define UART_WOOFLES_REQUEST_H

#include <stdint.h>

#include "uart_woofles/uart_woofles.h"

#define UART_WOOFLES_VERSION 1u

/** Requests; a response has UART_WOOFLES_RESPONSE set as well. */
enum uart_woofles_message {
    UART_WOOFLES_HELLO = 0x20,
    UART_WOOFLES_WRITE = 0x21,
    UART_WOOFLES_READ = 0x22,
    UART_WOOFLES_EXECUTE = 0x23,
    UART_WOOFLES_CHECK = 0x24,
    UART_WOOFLES_RESPONSE = 0x80,
    UART_WOOFLES_ERROR = 0xFF,
};

/** Codes in an error frame. */
enum uart_woofles_error {
    UART_WOOFLES_ERROR_VERSION = 1,
    UART_WOOFLES_ERROR_TYPE = 2,
    UART_WOOFLES_ERROR_LENGTH = 3,
    UART_WOOFLES_ERROR_RANGE = 4,
    UART_WOOFLES_ERROR_SEQUENCE = 5,
    UART_WOOFLES_ERROR_STATE = 6,
    UART_WOOFLES_ERROR_COMMAND = 7,
    UART_WOOFLES_ERROR_SHAPE = 8,
};

/** A request; kept until it is answered, because it may be sent again. */
struct uart_woofles_request {
    enum uart_woofles_message type;
    uint8_t head[8]; /* first bytes of the payload */
    uint32_t head_bytes;
    const void *data; /* remaining bytes of the payload; NULL for none */
    uint32_t data_bytes;
    uint32_t answer_bytes; /* of the response's payload */
    uint32_t patience_ms;  /* in addition to the device's time-out */
};

/** @brief Prepare the device for requests. Before the first request. */
void uart_woofles_request_init(struct uart_woofles *device);

/**
 * @brief Send a request, repeatedly if necessary, until it is answered. `*answer` is then the
 * payload of the response, valid until the next request. After an error `greeted` is false.
 * @retval FERRULE_ERR_TIMEOUT      no response, after all attempts
 * @retval FERRULE_ERR_DEVICE       the accelerator refused, the response has a wrong length, or the
 *                                  transport failed
 * @retval FERRULE_ERR_UNAVAILABLE  the accelerator uses another version of the protocol
 */
int32_t uart_woofles_ask(struct uart_woofles *device, const struct uart_woofles_request *request,
                         const uint8_t **answer);

#endif /* UART_WOOFLES_REQUEST_H */
