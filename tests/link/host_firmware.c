/* SPDX-License-Identifier: Apache-2.0 */
/* A firmware for the host: a model with 600 operators, a UART with two buffers, and counters
 * that advance with each register read. */
#include "host_firmware.h"

#include <string.h>

#include "ferrule/drivers/uart_cmsdk.h"
#include "ferrule/link.h"
#include "ferrule/port.h"
#include "ferrule/status.h"

uint32_t host_stack[1024];
uint32_t host_stack_pointer = 1000;
struct host host;

static uint8_t image[HOST_IMAGE_BYTES];
static int16_t bias[3];
static uint8_t reversed[HOST_IMAGE_BYTES];
static int16_t sums[3];
static uint32_t counters[HOST_OPERATORS];
static struct ferrule_link firmware;

uint32_t host_mmio_read32(uintptr_t address)
{
    switch (address) {
    case 0xE0001004u: /* CYCCNT */
        host.cycles += host.dwt_step;
        return host.cycles;
    case 0xE000E018u: /* SYST_CVR counts down */
        host.ticks = (host.ticks - host.systick_step) & 0xFFFFFFu;
        return host.ticks;
    case 0xE000E010u: { /* SYST_CSR: reading clears COUNTFLAG */
        const uint32_t flag = host.systick_wrapped ? 1u << 16 : 0u;
        host.systick_wrapped = false;
        return flag | 5u;
    }
    case HOST_UART_BASE + 4u:
        host.state_reads++;
        if (host.tx_busy != 0u) {
            host.tx_busy--;
            return 1u;
        }
        return host.rx_at < host.rx_end ? 2u : 0u;
    case HOST_UART_BASE:
        return host.rx_at < host.rx_end ? host.rx[host.rx_at++] : 0u;
    default:
        return 0u;
    }
}

void host_mmio_write32(uintptr_t address, uint32_t value)
{
    if (address == HOST_UART_BASE) {
        if (host.tx_end < HOST_WIRE_BYTES) {
            host.tx[host.tx_end++] = (uint8_t)value;
        }
        host.tx_busy = host.tx_wait;
    } else if (address == HOST_UART_BASE + 8u) {
        host.uart_control = value;
    } else if (address == HOST_UART_BASE + 16u) {
        host.uart_divider = value;
    } else {
        /* the counters need no set-up on the host */
    }
}

static void work(uint32_t cycles, uint32_t ticks)
{
    host.cycles += cycles;
    if (ticks > host.ticks) {
        host.systick_wrapped = true;
    }
    host.ticks = (host.ticks - ticks) & 0xFFFFFFu;
}

static void operate(uint32_t index)
{
    work(host.operator_cycles[index], host.operator_ticks[index]);
    if (index == 0u) {
        for (uint32_t i = 0; i < HOST_IMAGE_BYTES; i++) {
            reversed[i] = image[HOST_IMAGE_BYTES - 1u - i];
        }
    } else if (index == 1u) {
        for (uint32_t i = 0; i < 3u; i++) {
            sums[i] = bias[i];
        }
    } else if (index == 2u) {
        for (uint32_t i = 0; i < HOST_IMAGE_BYTES; i++) {
            sums[i % 3u] = (int16_t)((uint16_t)sums[i % 3u] + image[i]);
        }
        memset(image, 0, sizeof image); /* a run may overwrite its inputs */
    } else {
        /* the other operators only take time */
    }
}

static int32_t run(struct ferrule_run_info *info)
{
    host.runs++;
    host_stack[host_stack_pointer - host.stack_words] = 0u;
    for (uint32_t index = 0; index < HOST_OPERATORS; index++) {
        if (info->on_operator != NULL) {
            info->on_operator(info->context, index);
        }
        if (info->on_device != NULL) {
            info->on_device(info->device_context, index, index % 3u, index % 7u,
                            index == host.failing ? -7 : 0);
        }
        if (index == host.failing) {
            info->failed_operator = index;
            return -7;
        }
        operate(index);
    }
    if (info->on_operator != NULL) {
        info->on_operator(info->context, HOST_OPERATORS);
    }
    return 0;
}

static const struct ferrule_link_tensor inputs[] = {
    {.name = "image",
     .data = image,
     .bytes = sizeof image,
     .shape = {1, 100, 103, 3},
     .rank = 4,
     .type = FERRULE_LINK_UINT8},
    {.name = "bias \xC3\xA4",
     .data = bias,
     .bytes = sizeof bias,
     .shape = {3},
     .rank = 1,
     .type = FERRULE_LINK_INT16},
};
static const struct ferrule_link_tensor outputs[] = {
    {.name = "reversed",
     .data = reversed,
     .bytes = sizeof reversed,
     .shape = {100, 103, 3},
     .rank = 3,
     .type = FERRULE_LINK_UINT8},
    {.name = "sums",
     .data = sums,
     .bytes = sizeof sums,
     .shape = {3},
     .rank = 1,
     .type = FERRULE_LINK_INT16},
};
static struct ferrule_link_call calls[HOST_OPERATORS];
/* The board's name is longer than a text of the message. */
#define TEN       "0123456789"
#define HUNDRED   TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG_NAME HUNDRED HUNDRED TEN
static const struct ferrule_identity identity = {
    .magic = FERRULE_IDENTITY_MAGIC,
    .version = FERRULE_IDENTITY_VERSION,
    .model = {1, 2, 3},
    .plan = {4},
    .sources = {[15] = 255},
    .text = FERRULE_IDENTITY_TEXT("host", LONG_NAME),
};
const uint32_t ferrule_sizes[FERRULE_SIZES] = {100, 20, 3000, 4, 50, 600, 70000};
#if FERRULE_LINK_STATISTICS
#define HOST_STATISTICS 40u

/* Device 0 has more counts than fit into a frame, with names of any length; device 1 has none. */
static int32_t statistic(uint32_t device, uint32_t index, struct ferrule_statistic *found)
{
    static char names[HOST_STATISTICS][FERRULE_LINK_MAX_NAME + 45u];

    if (device != 0u || index >= HOST_STATISTICS) {
        return FERRULE_ERR_ARGUMENT;
    }
    (void)memset(names[index], 'a' + (int)(index % 26u), (index * 37u) % sizeof names[index]);
    names[index][0] = (char)('A' + (int)(index % 26u));
    names[index][1] = (char)('A' + (int)(index / 26u));
    found->name = names[index];
    found->count = UINT32_MAX - index;
    return FERRULE_OK;
}
#endif

static struct ferrule_link_model model = {
    .firmware = "host",
    .firmware_version = "1.2.3",
    .name = "reverse",
    .input_hash = "00ff",
    .inputs = inputs,
    .outputs = outputs,
    .counters = counters,
    .call_count = HOST_OPERATORS,
    .run = run,
    .input_count = 2,
    .output_count = 2,
    .operator_count = HOST_OPERATORS,
    .workspace_bytes = 4096,
#if FERRULE_LINK_STATISTICS
    .statistic = statistic,
#endif
};
static const struct ferrule_uart_cmsdk_config uart = {.base = HOST_UART_BASE,
                                                      .clock_hz = 25000000u};
static const struct ferrule_link_port port = {
    .read_byte = ferrule_uart_cmsdk_read,
    .write_byte = ferrule_uart_cmsdk_write,
    .context = (void *)(uintptr_t)&uart,
};

#if FERRULE_LINK_MODELS
static int32_t fail(struct ferrule_run_info *info)
{
    info->failed_operator = 0;
    return FERRULE_ERR_FAILED;
}

static const struct ferrule_link_model broken = {
    .firmware = "host",
    .firmware_version = "1.2.3",
    .name = "broken",
    .input_hash = "11ee",
    .run = fail,
};
static const struct ferrule_link_model *const models[] = {&model, &broken};
#endif

void host_hide_calls(void)
{
    model.calls = NULL;
}

void host_hide_identity(void)
{
    model.identity = NULL;
}

void host_reset(uint32_t dwt_step, uint32_t systick_step)
{
    memset(&host, 0, sizeof host);
    host.dwt_step = dwt_step;
    host.systick_step = systick_step;
    host.failing = UINT32_MAX;
    host.stack_words = 25;
    model.calls = calls;
    model.identity = &identity;
    (void)ferrule_uart_cmsdk_init(&uart);
    ferrule_link_init(&firmware, &model, &port);
#if FERRULE_LINK_MODELS
    ferrule_link_offer(&firmware, models, 2);
#endif
}

void host_receive(const uint8_t *data, uint32_t bytes)
{
    host.rx = data;
    host.rx_at = 0;
    host.rx_end = bytes;
    while (ferrule_link_poll(&firmware)) {
    }
}

int32_t host_uart_init(uint32_t clock_hz, uint32_t baud)
{
    const struct ferrule_uart_cmsdk_config config = {HOST_UART_BASE, clock_hz, baud};
    return ferrule_uart_cmsdk_init(&config);
}

#ifdef HOST_MAIN
#include <stdio.h>

/* Pass the standard input to the firmware in pieces, while sanitizers check it. */
int main(void)
{
    static uint8_t piece[4096];
    host_reset(3, 0);
    for (size_t bytes; (bytes = fread(piece, 1, sizeof piece, stdin)) > 0;) {
        host_receive(piece, (uint32_t)bytes);
        host.tx_end = 0;
    }
    printf("%u runs\n", host.runs);
    return 0;
}
#endif
