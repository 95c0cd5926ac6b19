/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ferrule/frame.h"
#include "ferrule/port.h"
#include "message.h"
#include "run.h"

#ifdef FERRULE_WITH_SELF_TEST
#include "ferrule/self_test.h"
#endif

#define WRITE_HEADER  8u  /* bytes before the data in WRITE_INPUT */
#define CALL_BYTES    12u /* bytes of one call in DEVICE_TRACE */
#define DIGESTS_AT    offsetof(struct ferrule_identity, model)
#define DIGESTS_BYTES (3u * FERRULE_DIGEST_BYTES)
#define BUILD_TEXT    200u /* most bytes of a text in BUILD_INFO, so that all fit into a frame */

/* A request in progress. The response overwrites the payload, so a handler reads its arguments
 * first. */
struct exchange {
    struct ferrule_link *link;
    uint8_t *payload;
    uint32_t bytes; /* of the request's payload, then of the response's */
    uint16_t sequence;
    uint8_t type; /* of the response */
};

static void send(struct exchange *exchange)
{
    uint8_t *header = (uint8_t *)exchange->link->frame;
    header[0] = (uint8_t)FERRULE_LINK_VERSION;
    header[1] = exchange->type;
    (void)ferrule_put16(header + 2, exchange->sequence);
    ferrule_frame_send(&exchange->link->line, FERRULE_FRAME_HEADER + exchange->bytes);
}

static uint8_t *put_start(uint8_t *at, const char *text, uint32_t most)
{
    uint8_t *const length = at++;
    *length = 0;
    for (; *text != '\0' && *length < most; text++) {
        *at++ = (uint8_t)*text;
        (*length)++;
    }
    return at;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
    return put_start(at, text, FERRULE_LINK_MAX_NAME);
}

static void finish(struct exchange *exchange, const uint8_t *end)
{
    exchange->bytes = (uint32_t)(end - exchange->payload);
}

static void refuse(struct exchange *exchange, enum ferrule_link_error code, const char *text)
{
    exchange->type = (uint8_t)FERRULE_ERROR;
    exchange->payload[0] = (uint8_t)code;
    finish(exchange, put_text(exchange->payload + 1, text));
}

static void hello(struct exchange *exchange)
{
#if FERRULE_LINK_MODELS
    exchange->link->model = exchange->link->models[0];
#endif
    const struct ferrule_link_model *model = exchange->link->model;
    exchange->link->greeted = true;
    exchange->link->result.valid = false; /* a new host restarts its sequence numbers */
    uint8_t *at = ferrule_put16(exchange->payload, FERRULE_LINK_MAX_PAYLOAD);
    at = put_text(at, model->firmware);
    finish(exchange, put_text(at, model->firmware_version));
}

static void model_info(struct exchange *exchange)
{
    const struct ferrule_link_model *model = exchange->link->model;
    uint8_t *at = ferrule_put32(exchange->payload, model->input_count);
    at = ferrule_put32(at, model->output_count);
    at = ferrule_put32(at, model->operator_count);
    at = ferrule_put32(at, model->workspace_bytes);
    at = ferrule_put32(at, (uint32_t)(ferrule_port_stack_top() - ferrule_port_stack_limit()));
    *at++ = (uint8_t)exchange->link->counter.source;
    at = put_text(at, model->name);
    finish(exchange, put_text(at, model->input_hash));
}

/* The sizes that the linker script states, preceded by their number, which is 0 if it states none.
 */
static uint8_t *put_sizes(uint8_t *at)
{
#if defined(__ELF__)
    if (ferrule_sizes != NULL) {
        *at++ = (uint8_t)FERRULE_SIZES;
        (void)memcpy(at, ferrule_sizes,
                     4u * FERRULE_SIZES); /* like tensors: the core is little-endian */
        return at + 4u * FERRULE_SIZES;
    }
#endif
    *at++ = 0;
    return at;
}

static void build_info(struct exchange *exchange)
{
    const struct ferrule_identity *identity = exchange->link->model->identity;
    if (identity == NULL) {
        refuse(exchange, FERRULE_LINK_ERROR_TYPE, "this firmware does not know its build");
        return;
    }
    uint8_t *at = exchange->payload;
    (void)memcpy(at, (const uint8_t *)identity + DIGESTS_AT, DIGESTS_BYTES);
    at = put_sizes(at + DIGESTS_BYTES);
    const char *text = identity->text;
    for (uint32_t i = 0; i < FERRULE_IDENTITY_TEXTS; i++) {
        at = put_start(at, text, BUILD_TEXT);
        while (*text++ != '\0') {
            /* to the next text */
        }
    }
    finish(exchange, at);
}

#if FERRULE_LINK_MODELS
#define NO_CHOICE 0xFFFFu /* an index that leaves the choice as it is */

static void choose_model(struct exchange *exchange)
{
    struct ferrule_link *link = exchange->link;
    const uint32_t index = ferrule_get16(exchange->payload);
    uint32_t chosen = 0;
    if (index != NO_CHOICE && index >= link->model_count) {
        refuse(exchange, FERRULE_LINK_ERROR_INDEX, "no such model");
        return;
    }
    if (index != NO_CHOICE) {
        link->model = link->models[index];
        link->result.valid = false; /* it is that of another model */
    }
    while (link->models[chosen] != link->model) {
        chosen++;
    }
    uint8_t *at = ferrule_put16(exchange->payload, link->model_count);
    finish(exchange, ferrule_put16(at, chosen));
}
#endif

static const struct ferrule_link_tensor *find(struct exchange *exchange, bool output,
                                              uint32_t index)
{
    const struct ferrule_link_model *model = exchange->link->model;
    if (index >= (output ? model->output_count : model->input_count)) {
        refuse(exchange, FERRULE_LINK_ERROR_INDEX, "no such tensor");
        return NULL;
    }
    return output ? &model->outputs[index] : &model->inputs[index];
}

static void tensor_info(struct exchange *exchange)
{
    const bool output = exchange->payload[0] != 0u;
    const struct ferrule_link_tensor *tensor =
        find(exchange, output, ferrule_get16(exchange->payload + 2));
    if (tensor == NULL) {
        return;
    }
    uint8_t *at = exchange->payload;
    *at++ = tensor->type;
    *at++ = tensor->rank;
    at = ferrule_put32(at, tensor->bytes);
    for (uint32_t axis = 0; axis < tensor->rank && axis < FERRULE_LINK_MAX_RANK; axis++) {
        at = ferrule_put32(at, tensor->shape[axis]);
    }
    finish(exchange, put_text(at, tensor->name));
}

static bool is_inside(const struct ferrule_link_tensor *tensor, uint32_t offset, uint32_t bytes)
{
    return offset <= tensor->bytes && bytes <= tensor->bytes - offset;
}

static void write_input(struct exchange *exchange)
{
    const uint32_t offset = ferrule_get32(exchange->payload + 4);
    const uint32_t bytes = exchange->bytes - WRITE_HEADER;
    const struct ferrule_link_tensor *tensor =
        find(exchange, false, ferrule_get16(exchange->payload));
    if (tensor == NULL) {
        return;
    }
    if (!is_inside(tensor, offset, bytes)) {
        refuse(exchange, FERRULE_LINK_ERROR_RANGE, "past the end of the input");
        return;
    }
    (void)memcpy((uint8_t *)tensor->data + offset, exchange->payload + WRITE_HEADER, bytes);
    exchange->bytes = 0;
}

static void run(struct exchange *exchange)
{
    struct ferrule_link_result *result = &exchange->link->result;
    const uint32_t flags = exchange->payload[0];
    uint32_t known = FERRULE_RUN_PROFILE | FERRULE_RUN_TRACE;
#if FERRULE_LINK_STATE
    known |= exchange->link->model->reset != NULL ? FERRULE_RUN_RESET : 0u;
#endif
    if ((flags & ~known) != 0u) {
        refuse(exchange, FERRULE_LINK_ERROR_FLAGS, "unknown flags");
        return;
    }
    if ((flags & FERRULE_RUN_PROFILE) != 0u && exchange->link->model->counters == NULL) {
        refuse(exchange, FERRULE_LINK_ERROR_FLAGS, "this firmware has no counters");
        return;
    }
    if ((flags & FERRULE_RUN_TRACE) != 0u && exchange->link->model->calls == NULL) {
        refuse(exchange, FERRULE_LINK_ERROR_FLAGS, "no layer of this firmware runs on a device");
        return;
    }
    if (!result->valid || result->sequence != exchange->sequence) {
        struct exchange started = *exchange;
        started.type = (uint8_t)FERRULE_STARTED;
        started.bytes = 0;
        send(&started);
        ferrule_link_run(exchange->link, flags);
        result->sequence = exchange->sequence;
    }
    uint8_t *at = ferrule_put32(exchange->payload, (uint32_t)result->status);
    at = ferrule_put32(at, result->failed_operator);
    at = ferrule_put32(at, (uint32_t)result->total);
    finish(exchange, ferrule_put32(at, (uint32_t)(result->total >> 32)));
}

static void read_counters(struct exchange *exchange)
{
    const struct ferrule_link_model *model = exchange->link->model;
    const uint32_t first = ferrule_get32(exchange->payload);
    const uint32_t most = FERRULE_LINK_MAX_PAYLOAD / sizeof(uint32_t);
    if (first > model->operator_count || model->counters == NULL) {
        refuse(exchange, FERRULE_LINK_ERROR_RANGE, "no such counter");
        return;
    }
    uint8_t *at = exchange->payload;
    for (uint32_t i = first; i < model->operator_count && i - first < most; i++) {
        at = ferrule_put32(at, model->counters[i]);
    }
    finish(exchange, at);
}

static void read_output(struct exchange *exchange)
{
    const uint32_t offset = ferrule_get32(exchange->payload + 4);
    const uint32_t bytes = ferrule_get32(exchange->payload + 8);
    const struct ferrule_link_tensor *tensor =
        find(exchange, true, ferrule_get16(exchange->payload));
    if (tensor == NULL) {
        return;
    }
    if (!exchange->link->result.valid) {
        refuse(exchange, FERRULE_LINK_ERROR_STATE, "nothing has run yet");
        return;
    }
    if (bytes > FERRULE_LINK_MAX_PAYLOAD || !is_inside(tensor, offset, bytes)) {
        refuse(exchange, FERRULE_LINK_ERROR_RANGE, "past the end of the output or the frame");
        return;
    }
    (void)memcpy(exchange->payload, (const uint8_t *)tensor->data + offset, bytes);
    exchange->bytes = bytes;
}

static void stack(struct exchange *exchange)
{
    const struct ferrule_link_result *result = &exchange->link->result;
    if (!result->valid) {
        refuse(exchange, FERRULE_LINK_ERROR_STATE, "nothing has run yet");
        return;
    }
    uint8_t *at = ferrule_put32(exchange->payload, result->stack.run_bytes);
    at = ferrule_put32(at, result->stack.peak_bytes);
    finish(exchange, ferrule_put32(at, result->stack.size_bytes));
}

static void device_trace(struct exchange *exchange)
{
    const struct ferrule_link_result *result = &exchange->link->result;
    const uint32_t first = ferrule_get32(exchange->payload);
    const uint32_t most = (FERRULE_LINK_MAX_PAYLOAD - sizeof(uint32_t)) / CALL_BYTES;
    if (!result->valid) {
        refuse(exchange, FERRULE_LINK_ERROR_STATE, "nothing has run yet");
        return;
    }
    if (first > result->calls) {
        refuse(exchange, FERRULE_LINK_ERROR_RANGE, "no such call");
        return;
    }
    uint8_t *at = ferrule_put32(exchange->payload, result->calls);
    for (uint32_t i = first; i < result->calls && i - first < most; i++) {
        const struct ferrule_link_call *call = &exchange->link->model->calls[i];
        at = ferrule_put32(at, call->index);
        at = ferrule_put16(at, call->device);
        at = ferrule_put16(at, call->call);
        at = ferrule_put32(at, (uint32_t)call->status);
    }
    finish(exchange, at);
}

#if FERRULE_LINK_STATISTICS
/* As many counts of a device as fit into a frame; none behind the last one. */
static void statistics(struct exchange *exchange)
{
    const struct ferrule_link_model *model = exchange->link->model;
    const uint32_t device = ferrule_get16(exchange->payload);
    const uint32_t first = ferrule_get16(exchange->payload + 2);
    const uint8_t *const full = exchange->payload + FERRULE_LINK_MAX_PAYLOAD -
                                (sizeof(uint32_t) + 1u + FERRULE_LINK_MAX_NAME);
    struct ferrule_statistic found = {.name = "", .count = 0};
    uint8_t *at = exchange->payload;
    uint32_t index = first;
    while (at <= full && model->statistic != NULL && model->statistic(device, index, &found) == 0) {
        at = ferrule_put32(at, found.count);
        at = put_text(at, found.name);
        index++;
    }
    finish(exchange, at);
}
#endif

#ifdef FERRULE_WITH_SELF_TEST
static void self_test(struct exchange *exchange)
{
    finish(exchange, ferrule_put32(exchange->payload, ferrule_self_test_result()));
}
#endif

/* The requests by type; the payload of each has `least` to `most` bytes. */
static const struct {
    void (*handle)(struct exchange *exchange);
    uint32_t least;
    uint32_t most;
} HANDLERS[] = {
    [FERRULE_HELLO] = {hello, 0, 0},
    [FERRULE_MODEL_INFO] = {model_info, 0, 0},
    [FERRULE_TENSOR_INFO] = {tensor_info, 4, 4},
    [FERRULE_WRITE_INPUT] = {write_input, WRITE_HEADER, FERRULE_LINK_MAX_PAYLOAD},
    [FERRULE_RUN] = {run, 1, 1},
    [FERRULE_READ_COUNTERS] = {read_counters, 4, 4},
    [FERRULE_READ_OUTPUT] = {read_output, 12, 12},
    [FERRULE_STACK] = {stack, 0, 0},
    [FERRULE_DEVICE_TRACE] = {device_trace, 4, 4},
    [FERRULE_BUILD_INFO] = {build_info, 0, 0},
#if FERRULE_LINK_MODELS
    [FERRULE_CHOOSE_MODEL] = {choose_model, 2, 2},
#endif
#ifdef FERRULE_WITH_SELF_TEST
    [FERRULE_SELF_TEST] = {self_test, 0, 0},
#endif
#if FERRULE_LINK_STATISTICS
    [FERRULE_STATISTICS] = {statistics, 4, 4},
#endif
};

static void answer(struct exchange *exchange, uint8_t version)
{
    const uint8_t type = exchange->type;
    exchange->type = (uint8_t)(type | FERRULE_RESPONSE);
    if (version != FERRULE_LINK_VERSION) {
        refuse(exchange, FERRULE_LINK_ERROR_VERSION, "unknown version of the protocol");
    } else if (type >= sizeof HANDLERS / sizeof HANDLERS[0] || HANDLERS[type].handle == NULL) {
        refuse(exchange, FERRULE_LINK_ERROR_TYPE, "unknown request");
    } else if (exchange->bytes < HANDLERS[type].least || exchange->bytes > HANDLERS[type].most) {
        refuse(exchange, FERRULE_LINK_ERROR_LENGTH, "wrong length of the request");
    } else if (type != FERRULE_HELLO && !exchange->link->greeted) {
        refuse(exchange, FERRULE_LINK_ERROR_STATE, "the firmware has restarted: send hello");
    } else {
        HANDLERS[type].handle(exchange);
    }
}

void ferrule_link_init(struct ferrule_link *link, const struct ferrule_link_model *model,
                       const struct ferrule_link_port *port)
{
    (void)memset(link, 0, sizeof *link);
    link->model = model;
    link->line.port = port;
    link->line.frame = (uint8_t *)link->frame;
    link->line.capacity = sizeof link->frame;
    ferrule_counter_start(&link->counter);
#if FERRULE_LINK_MODELS
    ferrule_link_offer(link, &link->model, 1);
#endif
}

#if FERRULE_LINK_MODELS
void ferrule_link_offer(struct ferrule_link *link, const struct ferrule_link_model *const *models,
                        uint32_t count)
{
    link->models = models;
    link->model_count = count;
}
#endif

bool ferrule_link_poll(struct ferrule_link *link)
{
    uint32_t bytes = 0;
    if (!ferrule_frame_receive(&link->line, &bytes)) {
        return false;
    }
    uint8_t *frame = (uint8_t *)link->frame;
    struct exchange exchange = {
        .link = link,
        .payload = frame + FERRULE_FRAME_HEADER,
        .bytes = bytes - FERRULE_FRAME_HEADER,
        .sequence = ferrule_get16(frame + 2),
        .type = frame[1],
    };
    answer(&exchange, frame[0]);
    send(&exchange);
    return true;
}
