/* SPDX-License-Identifier: Apache-2.0 */
/* Two tasks, each with its own model; a third sends the results. UART_BASE is defined on the
 * command line. */
#include "ferrule_second.c" /* first: it has static names that are common */
#include "ferrule_second_weights.c"

#include "guest.h"

#include "ferrule/platform/freertos.h"
#include "task.h"

#define WORK() vTaskDelay(1)
#include "two_models.h"

#include "contexts.h"

#define STACK_WORDS 512

static ferrule_device_t handles[2];
static const struct ferrule_first_devices devices = {.npu0 = &handles[0], .npu1 = &handles[1]};
static StaticTask_t blocks[3];
static StackType_t stacks[3][STACK_WORDS];
static volatile int32_t done;

void vApplicationTickHook(void);
void vApplicationTickHook(void)
{
}

static void work(void *number)
{
    run_often((uint32_t)(uintptr_t)number, &devices);
    done++;
    vTaskSuspend(NULL);
}

static void judge(void *unused)
{
    const int32_t *words = (const int32_t *)&told;

    (void)unused;
    while (done < 2) {
        vTaskDelay(1);
    }
    for (uint32_t i = 0; i < sizeof told / sizeof *words; i++) {
        put_word((uint32_t)words[i]);
    }
    vTaskSuspend(NULL);
}

static void start(void (*function)(void *), uintptr_t number, UBaseType_t priority)
{
    (void)xTaskCreateStatic(function, "task", STACK_WORDS, (void *)number, priority, stacks[number],
                            &blocks[number]);
}

static void start_device(ferrule_device_t *handle, struct soft_npu *context)
{
    told.failures += ferrule_device_init(handle) != FERRULE_OK ? 1 : 0;
    told.failures += ferrule_device_bind(handle, &soft_npu_driver, context) != FERRULE_OK ? 1 : 0;
    interrupt_driver(handle);
}

int main(void)
{
    start_uart();
    start_device(&handles[0], &npu0_context);
    start_device(&handles[1], &npu1_context);
    start(work, 0, 2);
    start(work, 1, 2);
    start(judge, 2, 1);
    vTaskStartScheduler();
    return 1;
}
