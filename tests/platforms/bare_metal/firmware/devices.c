/* SPDX-License-Identifier: Apache-2.0 */
/* Uses a device from the thread and from exceptions, and sends the result of every call;
 * UART_BASE is defined on the command line. */
#include "guest.h"

#include "ferrule/platform/bare_metal.h"

#define ICSR       0xE000ED04u
#define PENDSV_SET (1u << 28)

void ferrule_svcall_handler(void);
void ferrule_pendsv_handler(void);

static ferrule_device_t npu0;
static int32_t in_svc[3];
static volatile uint32_t pendsv_count;

void ferrule_svcall_handler(void)
{
    in_svc[0] = ferrule_device_open(&npu0);
    in_svc[1] = ferrule_device_close(&npu0);
    in_svc[2] = ferrule_device_destroy(&npu0);
}

void ferrule_pendsv_handler(void)
{
    pendsv_count++;
}

/* An exception that becomes pending while the driver runs is taken at once, unless the caller of
 * the device API masked interrupts. */
static int32_t activate(void *context)
{
    uint32_t *seen = (uint32_t *)context;

    REGISTER(ICSR) = PENDSV_SET;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    *seen = pendsv_count;
    return FERRULE_OK;
}

static uint32_t masked(void)
{
    uint32_t primask;

    __asm__ volatile("mrs %0, primask" : "=r"(primask));
    return primask;
}

static void send(int32_t status)
{
    put_word((uint32_t)status);
}

int main(void)
{
    static const struct ferrule_driver driver = {
        .name = "npu", .is_passive = true, .activate = activate};
    static uint32_t seen;

    start_uart();
    send(ferrule_device_init(&npu0));
    send(ferrule_device_bind(&npu0, NULL, NULL, &driver, &seen));
    send(ferrule_device_activate(&npu0));
    put_word(seen);
    put_word(masked());
    send(ferrule_device_open(&npu0));
    __asm__ volatile("svc 0" : : : "memory");
    for (int i = 0; i < 3; i++) {
        send(in_svc[i]);
    }
    send(ferrule_device_close(&npu0));
    send(ferrule_device_deactivate(&npu0));
    __asm__ volatile("cpsid i" : : : "memory");
    send(ferrule_device_activate(&npu0)); /* the exception stays pending */
    put_word(seen);
    put_word(masked());
    __asm__ volatile("cpsie i\n\tisb" : : : "memory");
    put_word(pendsv_count);
    send(ferrule_device_deactivate(&npu0));
    send(ferrule_device_destroy(&npu0));
    for (;;) {
        (void)get();
    }
}
