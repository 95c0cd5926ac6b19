/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/mlperf_tiny.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/status.h"

#define TERMINATOR      '%'
#define DEFAULT_RUNS    1u
#define DEFAULT_WARMUPS 10u
#define LINE_BYTES      8u /* of `db print` */
#define THOUSAND        1000.0f
#define LARGEST         4294967.0f /* above it, thousandths do not fit 32 bits */

static void print(const struct ferrule_mlperf_tiny *runner, const char *text)
{
    const struct ferrule_link_port *port = runner->config->port;
    for (; *text != '\0'; text++) {
        port->write_byte(port->context, (uint8_t)*text);
    }
}

static void print_number(const struct ferrule_mlperf_tiny *runner, uint32_t number)
{
    char digits[11];
    char *at = &digits[sizeof digits - 1u];
    *at = '\0';
    do {
        *--at = (char)('0' + (number % 10u));
        number /= 10u;
    } while (number != 0u);
    print(runner, at);
}

static void print_byte(const struct ferrule_mlperf_tiny *runner, uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    const char text[3] = {digits[byte >> 4], digits[byte & 15u], '\0'};
    print(runner, text);
}

/* Prints three decimals, as the runner's reference firmware does. */
static void print_real(const struct ferrule_mlperf_tiny *runner, float value)
{
    float size = value < 0.0f ? -value : value;
    size = size < LARGEST ? size : LARGEST; /* false for a NaN, too */
    const uint32_t thousandths = (uint32_t)(size * THOUSAND + 0.5f);
    const uint32_t decimals = thousandths % 1000u;
    if (value < 0.0f && thousandths != 0u) {
        print(runner, "-");
    }
    print_number(runner, thousandths / 1000u);
    print(runner, decimals < 10u ? ".00" : decimals < 100u ? ".0" : ".");
    print_number(runner, decimals);
}

static void print_value(const struct ferrule_mlperf_tiny *runner, const char *before,
                        uint32_t number, const char *after)
{
    print(runner, before);
    print_number(runner, number);
    print(runner, after);
}

/* Fewer than 2^32 cycles, or 2^24 without a cycle counter, may pass between two calls. */
static void advance(struct ferrule_mlperf_tiny *runner)
{
    const uint64_t count = ferrule_counter_read(&runner->counter);
    const uint32_t passed = (uint32_t)(count - runner->counted);
    const uint32_t per_us = runner->config->cycles_per_us;
    runner->counted = count;
    runner->now_us += passed / per_us;
    runner->rest += passed % per_us;
    if (runner->rest >= per_us) {
        runner->rest -= per_us;
        runner->now_us++;
    }
}

static void print_time(struct ferrule_mlperf_tiny *runner)
{
    advance(runner);
    print_value(runner, "m-lap-us-", runner->now_us, "\r\n");
}

static void on_operator(void *context, uint32_t index)
{
    (void)index;
    advance(context); /* a short hardware counter must not wrap unnoticed */
}

/* The executor may reuse the memory of an input, so each inference gets it again. */
static int32_t infer(struct ferrule_mlperf_tiny *runner)
{
    const struct ferrule_mlperf_tiny_config *config = runner->config;
    const struct ferrule_link_tensor *input = &config->model->inputs[0];
    const bool follows = runner->counter.source == FERRULE_COUNTER_SYSTICK;
    struct ferrule_run_info info = {.failed_operator = FERRULE_NO_OPERATOR};
    info.on_operator = follows ? on_operator : NULL;
    info.context = runner;
    const void *from = config->input == FERRULE_MLPERF_TINY_FLOAT32
                           ? (const void *)config->quantized
                           : (const void *)config->received;
    (void)memcpy(input->data, from, input->bytes);
    const int32_t status = config->model->run(&info);
    advance(runner);
    return status;
}

static float received_real(const struct ferrule_mlperf_tiny_config *config, uint32_t index)
{
    float value;
    (void)memcpy(&value, &config->received[index * sizeof value], sizeof value);
    return value;
}

/* Rounds half away from zero, as TensorFlow Lite does, and saturates. */
static int8_t quantized(const struct ferrule_mlperf_tiny_config *config, float value)
{
    float scaled = value / config->input_scale;
    scaled = scaled < -256.0f ? -256.0f : scaled;
    scaled = scaled < 256.0f ? scaled : 256.0f; /* false for a NaN, too */
    int32_t rounded = (int32_t)scaled;          /* towards zero */
    const float rest = scaled - (float)rounded; /* exact, unlike a sum with 0.5 */
    rounded += rest >= 0.5f ? 1 : rest <= -0.5f ? -1 : 0;
    rounded += config->input_zero_point;
    rounded = rounded < INT8_MIN ? INT8_MIN : rounded;
    return (int8_t)(rounded > INT8_MAX ? INT8_MAX : rounded);
}

static void convert(struct ferrule_mlperf_tiny *runner)
{
    const struct ferrule_mlperf_tiny_config *config = runner->config;
    if (runner->converted) {
        return;
    }
    runner->converted = true;
    if (config->input == FERRULE_MLPERF_TINY_UINT8) {
        for (uint32_t i = 0; i < config->received_bytes; i++) {
            config->received[i] ^= 0x80u; /* subtracts 128 */
        }
    } else if (config->input == FERRULE_MLPERF_TINY_FLOAT32) {
        for (uint32_t i = 0; i < config->received_bytes / sizeof(float); i++) {
            config->quantized[i] = quantized(config, received_real(config, i));
        }
    } else {
        /* the bytes are the model's input already */
    }
}

static float output_real(const struct ferrule_mlperf_tiny_config *config, uint32_t index)
{
    const struct ferrule_link_tensor *output = &config->model->outputs[0];
    if (output->type == (uint8_t)FERRULE_LINK_FLOAT32) {
        return ((const float *)output->data)[index];
    }
    const int32_t stored = ((const int8_t *)output->data)[index];
    return config->output_scale * (float)(stored - config->output_zero_point);
}

static uint32_t output_count(const struct ferrule_mlperf_tiny_config *config)
{
    const struct ferrule_link_tensor *output = &config->model->outputs[0];
    return output->type == (uint8_t)FERRULE_LINK_FLOAT32 ? output->bytes / 4u : output->bytes;
}

static void print_results(const struct ferrule_mlperf_tiny *runner)
{
    const struct ferrule_mlperf_tiny_config *config = runner->config;
    const uint32_t count = output_count(config);
    print(runner, "m-results-[");
    if (config->result == FERRULE_MLPERF_TINY_ERROR) {
        float sum = 0.0f;
        for (uint32_t i = 0; i < count; i++) {
            const float difference = output_real(config, i) - received_real(config, i);
            sum += difference * difference;
        }
        print_real(runner, sum / (float)count);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            print(runner, i == 0u ? "" : ",");
            print_real(runner, output_real(config, i));
        }
    }
    print(runner, "]\r\n");
}

static bool run(struct ferrule_mlperf_tiny *runner, uint32_t times)
{
    for (; times > 0u; times--) {
        if (infer(runner) != FERRULE_OK) {
            print(runner, "e-[The inference failed]\r\n");
            return false;
        }
    }
    return true;
}

static void answer_infer(struct ferrule_mlperf_tiny *runner, uint32_t times, uint32_t warmups)
{
    const uint32_t wanted = runner->config->received_bytes;
    if (runner->loaded != wanted) {
        print_value(runner, "e-[The input has ", runner->loaded, " bytes, expected ");
        print_value(runner, "", wanted, "]\r\n");
        return;
    }
    convert(runner);
    print_value(runner, "m-warmup-start-", warmups, "\r\n");
    if (!run(runner, warmups)) {
        return;
    }
    print(runner, "m-warmup-done\r\n");
    print_value(runner, "m-infer-start-", times, "\r\n");
    print_time(runner);
    if (!run(runner, times)) {
        return;
    }
    print_time(runner);
    print(runner, "m-infer-done\r\n");
    print_results(runner);
}

static int32_t hexadecimal(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

static void load(struct ferrule_mlperf_tiny *runner, const char *digits)
{
    for (; digits[0] != '\0'; digits += 2) {
        const int32_t high = hexadecimal(digits[0]);
        const int32_t low = high < 0 ? -1 : hexadecimal(digits[1]);
        if (low < 0) {
            print(runner, "e-[Expected pairs of hexadecimal digits]\r\n");
            return;
        }
        if (runner->loaded >= runner->expected) {
            print(runner, "e-[No more bytes are expected: db load]\r\n");
            return;
        }
        runner->config->received[runner->loaded++] = (uint8_t)((high << 4) | low);
        if (runner->loaded == runner->expected) {
            print(runner, "m-load-done\r\n");
            return; /* the runner may send more digits, which do not count */
        }
    }
}

static void expect(struct ferrule_mlperf_tiny *runner, uint32_t bytes)
{
    const uint32_t capacity = runner->config->received_bytes;
    runner->loaded = 0;
    runner->converted = false;
    runner->expected = bytes <= capacity ? bytes : 0u;
    if (bytes == 0u || bytes > capacity) {
        print_value(runner, "e-[db load: expected 1 to ", capacity, " bytes]\r\n");
        return;
    }
    print_value(runner, "m-[Expecting ", bytes, " bytes]\r\n");
}

/* Prints the bytes as the runner has sent them. */
static void print_loaded(const struct ferrule_mlperf_tiny *runner)
{
    const struct ferrule_mlperf_tiny_config *config = runner->config;
    const bool shifted = runner->converted && config->input == FERRULE_MLPERF_TINY_UINT8;
    for (uint32_t i = 0; i < runner->loaded; i++) {
        const bool last = (i % LINE_BYTES) == LINE_BYTES - 1u || i + 1u == runner->loaded;
        print(runner, (i % LINE_BYTES) == 0u ? "m-buffer-" : "-");
        print_byte(runner, (uint8_t)(config->received[i] ^ (shifted ? 0x80u : 0u)));
        print(runner, last ? "\r\n" : "");
    }
}

/* Ends the word at the start of `*text`, moves `*text` behind it, and returns the word; NULL if
 * there is none. */
static char *next_word(char **text)
{
    char *word = *text;
    while (*word == ' ') {
        word++;
    }
    char *end = word;
    while (*end != '\0' && *end != ' ') {
        end++;
    }
    *text = *end == '\0' ? end : end + 1;
    *end = '\0';
    return *word == '\0' ? NULL : word;
}

static bool is(const char *word, const char *name)
{
    while (*word != '\0' && *word == *name) {
        word++;
        name++;
    }
    return *word == *name;
}

/* Reads a whole number of at most nine digits; `*number` is unchanged without a word. */
static bool read_number(const char *word, uint32_t *number)
{
    uint32_t value = 0;
    uint32_t digits = 0;
    if (word == NULL) {
        return true;
    }
    for (; *word >= '0' && *word <= '9' && digits < 9u; word++) {
        value = value * 10u + (uint32_t)(*word - '0');
        digits++;
    }
    if (*word != '\0' || digits == 0u) {
        return false;
    }
    *number = value;
    return true;
}

static void answer_db(struct ferrule_mlperf_tiny *runner, char *rest)
{
    const char *word = next_word(&rest);
    uint32_t bytes = 0;
    if (word == NULL) {
        print(runner, "e-[Command 'db' requires a subcommand]\r\n");
    } else if (is(word, "load")) {
        expect(runner, read_number(next_word(&rest), &bytes) ? bytes : 0u);
    } else if (is(word, "print")) {
        print_loaded(runner);
    } else {
        load(runner, word);
    }
}

static void answer_run(struct ferrule_mlperf_tiny *runner, char *rest)
{
    uint32_t times = DEFAULT_RUNS;
    uint32_t warmups = DEFAULT_WARMUPS;
    if (!read_number(next_word(&rest), &times) || times == 0u) {
        print(runner, "e-[Inference iterations must be >0]\r\n");
    } else if (!read_number(next_word(&rest), &warmups)) {
        print(runner, "e-[Inference warmup must be >=0]\r\n");
    } else {
        answer_infer(runner, times, warmups);
    }
}

static void answer_texts(const struct ferrule_mlperf_tiny *runner, const char *before,
                         const char *text)
{
    print(runner, before);
    print(runner, text);
    print(runner, "]\r\n");
}

static void answer(struct ferrule_mlperf_tiny *runner)
{
    char *rest = runner->command;
    const char *word = next_word(&rest);
    if (word == NULL) {
        word = "";
    }
    if (is(word, "name")) {
        answer_texts(runner, "m-name-dut-[", runner->config->vendor);
    } else if (is(word, "timestamp")) {
        print_time(runner);
    } else if (is(word, "profile")) {
        answer_texts(runner, "m-profile-[", "ULPMark for tinyML Firmware V0.0.1");
        answer_texts(runner, "m-model-[", runner->config->benchmark);
    } else if (is(word, "db")) {
        answer_db(runner, rest);
    } else if (is(word, "infer")) {
        answer_run(runner, rest);
    } else if (is(word, "results")) {
        print_results(runner);
    } else if (is(word, "help")) {
        print(runner,
              "name, timestamp, profile, db load N, db HH.., db print, infer N W, results\r\n");
    } else {
        answer_texts(runner, "e-[Unknown command: ", word);
    }
    print(runner, "m-ready\r\n");
}

void ferrule_mlperf_tiny_init(struct ferrule_mlperf_tiny *runner,
                              const struct ferrule_mlperf_tiny_config *config)
{
    (void)memset(runner, 0, sizeof *runner);
    runner->config = config;
    ferrule_counter_start(&runner->counter);
    print(runner, "m-timestamp-mode-performance\r\n");
    print_time(runner);
    print(runner, "m-init-done\r\nm-ready\r\n");
}

bool ferrule_mlperf_tiny_poll(struct ferrule_mlperf_tiny *runner)
{
    const struct ferrule_link_port *port = runner->config->port;
    for (;;) {
        const int32_t byte = port->read_byte(port->context);
        advance(runner);
        if (byte < 0) {
            return false;
        }
        if (byte == TERMINATOR) {
            runner->command[runner->length] = '\0';
            runner->length = 0;
            answer(runner);
            return true;
        }
        if (runner->length < FERRULE_MLPERF_TINY_COMMAND && byte != '\r' && byte != '\n') {
            runner->command[runner->length++] = (char)byte;
        }
    }
}

void ferrule_mlperf_tiny_serve(const struct ferrule_mlperf_tiny_config *config)
{
    static struct ferrule_mlperf_tiny runner;
    ferrule_mlperf_tiny_init(&runner, config);
    for (;;) {
        (void)ferrule_mlperf_tiny_poll(&runner); /* poll again whatever the result */
    }
}
