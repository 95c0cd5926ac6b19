/* SPDX-License-Identifier: Apache-2.0 */
/* A firmware with a model whose instruction counts and stack use are known; UART_BASE and BYTES
 * are defined on the command line. */
#include <string.h>

#include "ferrule/drivers/uart_cmsdk.h"
#include "ferrule/link.h"

int main(void);

static uint8_t in[BYTES];
static uint8_t out[BYTES];
static uint32_t counters[4];

/* Execute 2 * turns instructions, plus those of the call. */
static void __attribute__((noinline)) spin(uint32_t turns)
{
    __asm__ volatile("1: subs %0, #1\n bne 1b" : "+r"(turns) : : "cc");
}

static void __attribute__((noinline)) sink(void)
{
    volatile uint32_t deep[512];
    deep[0] = 0;
    deep[511] = deep[0];
}

static int32_t run(struct ferrule_run_info *info)
{
    for (uint32_t index = 0; index < 4u; index++) {
        if (info->on_operator != NULL) {
            info->on_operator(info->context, index);
        }
        if (index == 0u) {
            spin(1000000u);
        } else if (index == 1u) {
            spin(20u);
        } else if (index == 2u) {
            sink();
        } else {
            memcpy(out, in, BYTES);
        }
    }
    if (info->on_operator != NULL) {
        info->on_operator(info->context, 4u);
    }
    return 0;
}

int main(void)
{
    static const struct ferrule_link_tensor tensors[] = {
        {.name = "in",
         .data = in,
         .bytes = BYTES,
         .shape = {BYTES},
         .rank = 1,
         .type = FERRULE_LINK_UINT8},
        {.name = "out",
         .data = out,
         .bytes = BYTES,
         .shape = {BYTES},
         .rank = 1,
         .type = FERRULE_LINK_UINT8},
    };
    static const struct ferrule_link_model model = {
        .firmware = "guest",
        .firmware_version = "0",
        .name = "copy",
        .input_hash = "",
        .inputs = &tensors[0],
        .outputs = &tensors[1],
        .counters = counters,
        .run = run,
        .input_count = 1,
        .output_count = 1,
        .operator_count = 4,
    };
    static const struct ferrule_uart_cmsdk_config uart = {.base = UART_BASE, .clock_hz = 25000000u};
    static const struct ferrule_link_port port = {
        .read_byte = ferrule_uart_cmsdk_read,
        .write_byte = ferrule_uart_cmsdk_write,
        .context = (void *)(uintptr_t)&uart,
    };
    if (ferrule_uart_cmsdk_init(&uart) == 0) {
        ferrule_link_serve(&model, &port);
    }
    return 1;
}
