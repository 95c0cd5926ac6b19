/* SPDX-License-Identifier: Apache-2.0 */
#include "uart_woofles/uart_woofles.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/device.h"
#include "uart_woofles/request.h"

#define LEAST_PAYLOAD (4u * WOOFLES_COMMAND_WORDS)
#define GREETING      12u /* payload bytes of responses */
#define EXECUTED      8u
#define CHECKED       4u

static void forget(struct uart_woofles *device)
{
    device->resident_count = 0;
    device->store_used = 0;
}

/* Restarts the sequence numbers, and finds out whether the accelerator still has the constants. */
static int32_t greet(struct uart_woofles *device)
{
    struct uart_woofles_request request = {
        .type = UART_WOOFLES_HELLO, .head_bytes = 4u, .answer_bytes = GREETING};
    const uint8_t *answer = NULL;
    int32_t status;

    device->greeted = false;
    (void)ferrule_put32(request.head, device->token);
    status = uart_woofles_ask(device, &request, &answer);
    if (status != FERRULE_OK) {
        return status;
    }
    const uint32_t payload_bytes = ferrule_get16(answer);
    const uint32_t memory_bytes = ferrule_get32(answer + 4);
    const uint32_t token = ferrule_get32(answer + 8);
    if (token == 0u || payload_bytes < LEAST_PAYLOAD) {
        return FERRULE_ERR_DEVICE;
    }
    if (memory_bytes < device->memory_bytes ||
        memory_bytes - device->memory_bytes < device->store_bytes) {
        return FERRULE_ERR_UNAVAILABLE;
    }
    if (token != device->token) {
        forget(device);
    }
    device->token = token;
    device->payload_bytes =
        payload_bytes < UART_WOOFLES_PAYLOAD ? payload_bytes : UART_WOOFLES_PAYLOAD;
    device->executed = 0;
    device->greeted = true;
    return FERRULE_OK;
}

static int32_t device_activate(void *context)
{
    struct uart_woofles *device = context;

    if (device == NULL || device->transport == NULL || device->timeout_ms == 0u ||
        device->attempts == 0u) {
        return FERRULE_ERR_ARGUMENT;
    }
    uart_woofles_request_init(device);
    return greet(device);
}

/* After a reported error, greets the accelerator again. Otherwise tensors may be in the
 * accelerator, and it must not have lost them. */
static int32_t device_check(void *context)
{
    struct uart_woofles *device = context;
    const struct uart_woofles_request request = {.type = UART_WOOFLES_CHECK,
                                                 .answer_bytes = CHECKED};
    const uint8_t *answer = NULL;
    int32_t status;

    if (!device->greeted) {
        return greet(device);
    }
    status = uart_woofles_ask(device, &request, &answer);
    if (status == FERRULE_OK && ferrule_get32(answer) != device->token) {
        device->greeted = false;
        return FERRULE_ERR_DEVICE;
    }
    return status;
}

static int32_t send_bytes(struct uart_woofles *device, uint32_t address, const void *source,
                          size_t bytes)
{
    const uint8_t *at = source;
    const uint8_t *answer = NULL;

    while (bytes != 0u) {
        const uint32_t most = device->payload_bytes - 4u;
        const uint32_t part = bytes < most ? (uint32_t)bytes : most;
        struct uart_woofles_request request = {
            .type = UART_WOOFLES_WRITE, .head_bytes = 4u, .data = at, .data_bytes = part};

        (void)ferrule_put32(request.head, address);
        const int32_t status = uart_woofles_ask(device, &request, &answer);
        if (status != FERRULE_OK) {
            return status;
        }
        at += part;
        address += part;
        bytes -= part;
    }
    return FERRULE_OK;
}

static bool is_inside(const struct uart_woofles *device, uint32_t offset, size_t bytes)
{
    return offset <= device->memory_bytes && bytes <= device->memory_bytes - offset;
}

static int32_t device_copy_to(void *context, uint32_t device_offset, const void *source,
                              size_t bytes)
{
    struct uart_woofles *device = context;

    if (!is_inside(device, device_offset, bytes)) {
        return FERRULE_ERR_ARGUMENT;
    }
    return device->greeted ? send_bytes(device, device_offset, source, bytes) : FERRULE_ERR_DEVICE;
}

static int32_t device_copy_from(void *context, void *destination, uint32_t device_offset,
                                size_t bytes)
{
    struct uart_woofles *device = context;
    uint8_t *at = destination;
    const uint8_t *answer = NULL;

    if (!is_inside(device, device_offset, bytes)) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (!device->greeted) {
        return FERRULE_ERR_DEVICE;
    }
    while (bytes != 0u) {
        const uint32_t part =
            bytes < device->payload_bytes ? (uint32_t)bytes : device->payload_bytes;
        struct uart_woofles_request request = {
            .type = UART_WOOFLES_READ, .head_bytes = 8u, .answer_bytes = part};

        (void)ferrule_put32(ferrule_put32(request.head, device_offset), part);
        const int32_t status = uart_woofles_ask(device, &request, &answer);
        if (status != FERRULE_OK) {
            return status;
        }
        (void)memcpy(at, answer, part);
        at += part;
        device_offset += part;
        bytes -= part;
    }
    return FERRULE_OK;
}

const struct ferrule_driver uart_woofles_driver = {
    .name = "uart_woofles",
    .is_passive = true, /* it is behind a serial line */
    .activate = device_activate,
    .check = device_check,
    .copy_to = device_copy_to,
    .copy_from = device_copy_from,
    .memory_bytes = UINT32_MAX, /* the actual size is in each device's context */
};

/* Sizes in bytes: the padded weights, and each of the arrays of words after them. */
static uint32_t padded(const struct uart_woofles_layer *layer)
{
    return (layer->weights_bytes + 3u) & ~(uint32_t)3u;
}

static uint32_t words_bytes(const struct uart_woofles_layer *layer)
{
    return 4u * (uint32_t)layer->command.output_channels;
}

static const struct uart_woofles_resident *find(const struct uart_woofles *device,
                                                const struct uart_woofles_layer *layer)
{
    for (uint32_t index = 0; index < device->resident_count; index++) {
        if (device->residents[index].layer == layer) {
            return &device->residents[index];
        }
    }
    return NULL;
}

static int32_t send_words(struct uart_woofles *device, uint32_t address, const int32_t *words,
                          uint32_t bytes)
{
    return words == NULL ? FERRULE_OK : send_bytes(device, address, words, bytes);
}

/* Stores a layer's constants in the accelerator: weights, multipliers, shifts, bias. If the store
 * is full, all other constants are dropped first. */
static int32_t make_resident(struct uart_woofles *device, const struct uart_woofles_layer *layer)
{
    const uint32_t words = words_bytes(layer);
    const uint32_t bytes = padded(layer) + 3u * words;
    int32_t status;

    if (bytes > device->store_bytes) {
        return FERRULE_ERR_MEMORY;
    }
    if (bytes > device->store_bytes - device->store_used ||
        device->resident_count == UART_WOOFLES_RESIDENTS) {
        forget(device);
    }
    const uint32_t address = device->memory_bytes + device->store_used;
    uint32_t at = address + padded(layer);
    status = send_bytes(device, address, layer->weights, layer->weights_bytes);
    if (status == FERRULE_OK) {
        status = send_words(device, at, layer->multipliers, words);
    }
    at += words;
    if (status == FERRULE_OK) {
        status = send_words(device, at, layer->shifts, words);
    }
    at += words;
    if (status == FERRULE_OK) {
        status = send_words(device, at, layer->bias, words);
    }
    if (status == FERRULE_OK) {
        device->residents[device->resident_count++] =
            (struct uart_woofles_resident){.layer = layer, .address = address};
        device->store_used += bytes;
    }
    return status;
}

/* Fills in the addresses of the constants, and stores the constants first if necessary. */
static int32_t place_constants(struct uart_woofles *device, const struct uart_woofles_layer *layer,
                               struct woofles_command *command)
{
    const uint32_t words = words_bytes(layer);
    const struct uart_woofles_resident *resident = find(device, layer);

    if (resident == NULL) {
        const int32_t status = make_resident(device, layer);
        if (status != FERRULE_OK) {
            return status;
        }
        resident = &device->residents[device->resident_count - 1u];
    }
    command->second = resident->address;
    command->multipliers = resident->address + padded(layer);
    command->shifts = command->multipliers + words;
    command->bias = layer->bias == NULL ? 0u : command->shifts + words;
    return FERRULE_OK;
}

/* Encodes the command for the wire, with its checksum. */
static void encode(const struct woofles_command *command, uint8_t *bytes)
{
    uint32_t words[WOOFLES_COMMAND_WORDS];
    uint32_t sum = 0;

    (void)memcpy(words, command, sizeof(words));
    for (uint32_t index = 0; index < WOOFLES_COMMAND_WORDS - 1u; index++) {
        sum += words[index];
        bytes = ferrule_put32(bytes, words[index]);
    }
    (void)ferrule_put32(bytes, ~sum);
}

/* Executes a command on the accelerator, and accepts only the response to this command. */
static int32_t run(struct uart_woofles *device, const struct woofles_command *command,
                   uint32_t patience_ms)
{
    uint8_t bytes[4u * WOOFLES_COMMAND_WORDS];
    const struct uart_woofles_request request = {.type = UART_WOOFLES_EXECUTE,
                                                 .data = bytes,
                                                 .data_bytes = sizeof(bytes),
                                                 .answer_bytes = EXECUTED,
                                                 .patience_ms = patience_ms};
    const uint8_t *answer = NULL;

    encode(command, bytes);
    const int32_t status = uart_woofles_ask(device, &request, &answer);
    if (status != FERRULE_OK) {
        return status;
    }
    device->executed++;
    if (ferrule_get32(answer) != command->sequence ||
        ferrule_get32(answer + 4) != device->executed) {
        device->greeted = false;
        return FERRULE_ERR_DEVICE;
    }
    return FERRULE_OK;
}

int32_t uart_woofles_execute(void *resource_handle, const struct uart_woofles_layer *layer,
                             uint32_t input, uint32_t second, uint32_t output)
{
    void *context = NULL;
    int32_t status = ferrule_device_context(resource_handle, &uart_woofles_driver, &context);

    if (status != FERRULE_OK) {
        return status;
    }
    if (layer == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    struct uart_woofles *device = context;
    struct woofles_command command = layer->command;
    if (!device->greeted) {
        return FERRULE_ERR_DEVICE;
    }
    command.sequence = device->executed + 1u;
    command.input = input;
    command.second = second;
    command.output = output;
    if (layer->weights != NULL) {
        status = place_constants(device, layer, &command);
    }
    return status == FERRULE_OK ? run(device, &command, layer->patience_ms) : status;
}
