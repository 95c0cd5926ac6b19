/* SPDX-License-Identifier: Apache-2.0 */
#include "uart_woofles/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ferrule/status.h"

/* The transport is read in steps of this time, so that received bytes can be examined in between.
 */
#define STEP_MS 10u
/* Maximum number of reads that return bytes in one attempt: far more than any response needs, but
 * it bounds noise. */
#define MOST_READS 256u

static void flush(struct uart_woofles *device)
{
    const struct ferrule_transport *transport = device->transport;

    if (device->sent == FERRULE_OK && device->chunk_bytes != 0u) {
        device->sent = transport->write(transport->context, device->chunk, device->chunk_bytes,
                                        device->timeout_ms);
    }
    device->chunk_bytes = 0;
}

static void write_byte(void *context, uint8_t byte)
{
    struct uart_woofles *device = context;

    device->chunk[device->chunk_bytes++] = byte;
    if (device->chunk_bytes == UART_WOOFLES_CHUNK) {
        flush(device);
    }
}

static int32_t read_byte(void *context)
{
    struct uart_woofles *device = context;

    return device->chunk_taken < device->chunk_bytes ? device->chunk[device->chunk_taken++] : -1;
}

void uart_woofles_request_init(struct uart_woofles *device)
{
    device->port = (struct ferrule_link_port){
        .read_byte = read_byte, .write_byte = write_byte, .context = device};
    device->line = (struct ferrule_frame_line){
        .port = &device->port, .frame = device->frame, .capacity = sizeof(device->frame)};
}

static int32_t send(struct uart_woofles *device, const struct uart_woofles_request *request)
{
    uint8_t *at = device->frame;

    *at++ = (uint8_t)UART_WOOFLES_VERSION;
    *at++ = (uint8_t)request->type;
    at = ferrule_put16(at, device->sequence);
    (void)memcpy(at, request->head, request->head_bytes);
    if (request->data != NULL) {
        (void)memcpy(at + request->head_bytes, request->data, request->data_bytes);
    }
    device->sent = FERRULE_OK;
    device->chunk_bytes = 0;
    device->chunk_taken = 0;
    ferrule_frame_send(&device->line,
                       FERRULE_FRAME_HEADER + request->head_bytes + request->data_bytes);
    flush(device);
    return device->sent;
}

/* The minimum number of missing bytes: waiting for more could block, because no byte may follow. */
static uint32_t missing(const struct uart_woofles *device,
                        const struct uart_woofles_request *request)
{
    const uint32_t whole = FERRULE_FRAME_HEADER + request->answer_bytes + FERRULE_FRAME_TRAILER;
    const uint32_t received = device->line.received;
    const uint32_t wanted = received > whole ? UART_WOOFLES_CHUNK : whole - received + 1u;

    return wanted < UART_WOOFLES_CHUNK ? wanted : UART_WOOFLES_CHUNK;
}

/* Returns the status for a frame with the request's sequence number. */
static int32_t judge(struct uart_woofles *device, const struct uart_woofles_request *request,
                     uint32_t payload_bytes)
{
    const uint8_t *frame = device->frame;

    if (frame[1] == (uint8_t)UART_WOOFLES_ERROR) {
        device->refusal = payload_bytes != 0u ? frame[FERRULE_FRAME_HEADER] : 0u;
        return device->refusal == (uint32_t)UART_WOOFLES_ERROR_VERSION ? FERRULE_ERR_UNAVAILABLE
                                                                       : FERRULE_ERR_DEVICE;
    }
    return frame[0] == UART_WOOFLES_VERSION &&
                   frame[1] == ((uint32_t)request->type | (uint32_t)UART_WOOFLES_RESPONSE) &&
                   payload_bytes == request->answer_bytes
               ? FERRULE_OK
               : FERRULE_ERR_DEVICE;
}

/* Takes frames out of the chunk; returns whether one has the request's sequence number. Others are
 * late responses to earlier requests. */
static bool take(struct uart_woofles *device, const struct uart_woofles_request *request,
                 int32_t *verdict)
{
    uint32_t bytes = 0;

    while (ferrule_frame_receive(&device->line, &bytes)) {
        if (ferrule_get16(device->frame + 2) == device->sequence) {
            *verdict = judge(device, request, bytes - FERRULE_FRAME_HEADER);
            return true;
        }
    }
    return false;
}

/* Returns the status of the response, FERRULE_ERR_TIMEOUT, or FERRULE_ERR_DEVICE if the transport
 * only returned errors; `*answered` is true in the first case. */
static int32_t receive(struct uart_woofles *device, const struct uart_woofles_request *request,
                       bool *answered)
{
    const struct ferrule_transport *transport = device->transport;
    const uint32_t time_ms = device->timeout_ms + request->patience_ms;
    uint32_t steps = time_ms / STEP_MS + 1u;
    uint32_t reads = MOST_READS;
    int32_t outcome = FERRULE_ERR_TIMEOUT;

    while (steps != 0u && reads != 0u) {
        size_t came = 0;
        const int32_t status =
            transport->read(transport->context, device->chunk, missing(device, request),
                            time_ms < STEP_MS ? time_ms : STEP_MS, &came);
        int32_t verdict = FERRULE_OK;
        device->chunk_bytes = came <= UART_WOOFLES_CHUNK ? (uint32_t)came : 0u;
        device->chunk_taken = 0;
        if (take(device, request, &verdict)) {
            *answered = true;
            return verdict;
        }
        if (status == FERRULE_OK) {
            reads--;
        } else {
            steps--;
            outcome = status == FERRULE_ERR_TIMEOUT ? outcome : FERRULE_ERR_DEVICE;
        }
    }
    return outcome;
}

int32_t uart_woofles_ask(struct uart_woofles *device, const struct uart_woofles_request *request,
                         const uint8_t **answer)
{
    int32_t status = FERRULE_ERR_TIMEOUT;
    bool answered = false;

    device->sequence++;
    *answer = device->frame + FERRULE_FRAME_HEADER;
    for (uint32_t attempt = 0; attempt < device->attempts && !answered; attempt++) {
        if (attempt != 0u) {
            device->repeated++;
        }
        status = send(device, request);
        if (status == FERRULE_OK) {
            status = receive(device, request, &answered);
        }
    }
    if (status != FERRULE_OK) {
        device->greeted = false;
    }
    return status;
}
