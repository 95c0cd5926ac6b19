/* SPDX-License-Identifier: Apache-2.0 */
/* Two tasks use one device in turns; a third judges and sends the results. UART_BASE is defined
 * on the command line. */
#include "guest.h"

#include "ferrule/platform/freertos.h"
#include "task.h"

#define ROUNDS      20
#define STACK_WORDS 256

static ferrule_device_t npu0;
static volatile int32_t errors;
static volatile int32_t overlaps;
static volatile int32_t inside;
static volatile int32_t done;
static volatile int32_t in_interrupt;
static volatile int32_t foreign[2];
static volatile uint32_t own_priority;

static StaticTask_t blocks[4];
static StackType_t stacks[4][STACK_WORDS];

void vApplicationTickHook(void);
void vApplicationTickHook(void)
{
    in_interrupt = ferrule_device_open(&npu0);
}

static void note(int32_t status)
{
    if (status != FERRULE_OK) {
        errors++;
    }
}

static void user(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        note(ferrule_device_activate(&npu0));
        note(ferrule_device_open(&npu0));
        if (inside++ > 0) {
            overlaps++;
        }
        vTaskDelay(1);
        inside--;
        note(ferrule_device_close(&npu0));
        note(ferrule_device_deactivate(&npu0));
    }
    done++;
    vTaskSuspend(NULL);
}

/* A task of higher priority than the judge, which holds the device open meanwhile. */
static void stranger(void *unused)
{
    (void)unused;
    foreign[0] = ferrule_device_open(&npu0);
    foreign[1] = ferrule_device_close(&npu0);
    done++;
    vTaskSuspend(NULL);
}

static void start(void (*function)(void *), uint32_t number, UBaseType_t priority)
{
    (void)xTaskCreateStatic(function, "task", STACK_WORDS, NULL, priority, stacks[number],
                            &blocks[number]);
}

static void send(int32_t status)
{
    put_word((uint32_t)status);
}

static void judge(void *unused)
{
    (void)unused;
    while (done < 2) {
        vTaskDelay(1);
    }
    send(errors);
    send(overlaps);
    send(in_interrupt);
    send(ferrule_device_activate(&npu0));
    send(ferrule_device_open(&npu0));
    start(stranger, 3, 3);
    own_priority = (uint32_t)uxTaskPriorityGet(NULL); /* inherited from the stranger, which waits */
    put_word(own_priority);
    while (done < 3) {
        vTaskDelay(1);
    }
    send(foreign[0]);
    send(foreign[1]);
    send(ferrule_device_close(&npu0));
    put_word((uint32_t)uxTaskPriorityGet(NULL));
    send(ferrule_device_deactivate(&npu0));
    send(ferrule_device_destroy(&npu0));
    vTaskSuspend(NULL);
}

int main(void)
{
    static const struct ferrule_driver driver = {.name = "npu", .is_passive = true};

    start_uart();
    send(ferrule_device_init(&npu0)); /* before the scheduler runs */
    send(ferrule_device_bind(&npu0, &driver, NULL));
    start(user, 0, 2);
    start(user, 1, 2);
    start(judge, 2, 1);
    vTaskStartScheduler();
    return 1;
}
