/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance program on Eclipse ThreadX. */
#include "ferrule/conformance.h"

#include "tx_api.h"

#define STACK_BYTES 2048u
#define REGISTER(a) (*(volatile uint32_t *)(a))
#define TEXT(x)     #x
#define TEXT_OF(x)  TEXT(x)

const char conformance_kernel[] =
    "ThreadX " TEXT_OF(THREADX_MAJOR_VERSION) "." TEXT_OF(THREADX_MINOR_VERSION);
const uint32_t conformance_tick_hz = TX_TIMER_TICKS_PER_SECOND;

static TX_THREAD threads[CONFORMANCE_THREADS];
static uint64_t stacks[CONFORMANCE_THREADS][STACK_BYTES / sizeof(uint64_t)];
static conformance_body bodies[CONFORMANCE_THREADS];
static bool was_used[CONFORMANCE_THREADS];

int32_t conformance_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context)
{
    return ferrule_device_bind(dev, driver, context);
}

static void run(ULONG thread)
{
    bodies[thread](thread);
}

void conformance_spawn(uint32_t thread, conformance_body body, uint32_t priority)
{
    const UINT own = 10u - priority; /* ThreadX counts from the highest */

    if (was_used[thread]) {
        (void)tx_thread_delete(&threads[thread]);
    }
    was_used[thread] = true;
    bodies[thread] = body;
    (void)tx_thread_create(&threads[thread], (CHAR *)"conformance", run, thread, stacks[thread],
                           STACK_BYTES, own, own, TX_NO_TIME_SLICE, TX_AUTO_START);
}

void conformance_sleep(uint32_t ms)
{
    (void)tx_thread_sleep((ms * TX_TIMER_TICKS_PER_SECOND + 999u) / 1000u);
}

void tx_application_define(void *first_unused_memory)
{
    (void)first_unused_memory;
    conformance_before_the_kernel();
    conformance_spawn(CONFORMANCE_JUDGE, conformance_judge, CONFORMANCE_JUDGE_PRIORITY);
}

/* ---- the parts of ThreadX's example files for a board: the tick and the priorities */

extern VOID *_tx_thread_system_stack_ptr;
extern VOID *_tx_initialize_unused_memory;
extern uint32_t stack_top[], end[];

void _tx_initialize_low_level(void);
void _tx_timer_interrupt(void);
void board_tick_handler(void);
void board_no_handler(void);

void _tx_initialize_low_level(void)
{
    _tx_thread_system_stack_ptr = stack_top;
    _tx_initialize_unused_memory = end;
    REGISTER(0xE000E014u) = 25000000u / TX_TIMER_TICKS_PER_SECOND - 1u; /* SysTick */
    REGISTER(0xE000E018u) = 0;
    REGISTER(0xE000E010u) = 7;
    REGISTER(0xE000ED1Cu) = 0xFF000000u; /* the lowest priority for SVC */
    REGISTER(0xE000ED20u) = 0x40FF0000u; /* the lowest for PendSV, a high one for SysTick */
}

void board_tick_handler(void)
{
    _tx_timer_interrupt();
}

void board_no_handler(void)
{
    for (;;) { /* this port makes no SVC */
    }
}

int main(void)
{
    tx_kernel_enter();
    return 1;
}
