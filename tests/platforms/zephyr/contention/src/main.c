/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads contend for one device on a real kernel; prints PASS, or the failed checks. */
#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>
#include <zephyr/pm/device.h>
#include <zephyr/sys/printk.h>

#include "ferrule/platform/zephyr.h"

#define ROUNDS 20
#define STACK  2048

static int failures;

static void expect(const char *what, long found, long expected)
{
    if (found != expected) {
        printk("%s: found %ld, expected %ld\n", what, found, expected);
        failures++;
    }
}

struct npu {
    int activations;
    int deactivations;
    int checks;
};

static int32_t activate(void *context)
{
    ((struct npu *)context)->activations++;
    return FERRULE_OK;
}

static int32_t deactivate(void *context)
{
    ((struct npu *)context)->deactivations++;
    return FERRULE_OK;
}

static int32_t check(void *context)
{
    ((struct npu *)context)->checks++;
    return FERRULE_OK;
}

static const struct ferrule_driver driver = {.name = "npu",
                                             .is_passive = true,
                                             .activate = activate,
                                             .deactivate = deactivate,
                                             .check = check};
static struct npu npu;
static ferrule_device_t handle;
static const struct device *const device = DEVICE_DT_GET(DT_NODELABEL(npu));

static volatile int inside;
static volatile int overlaps;
static int runs[2];

/* Run inferences: activate and open the device, use it, close and deactivate it. */
static void infer(void *number, void *second, void *third)
{
    int *own = &runs[(intptr_t)number];

    ARG_UNUSED(second);
    ARG_UNUSED(third);
    for (int round = 0; round < ROUNDS; round++) {
        if (ferrule_device_activate(&handle) != FERRULE_OK ||
            ferrule_device_open(&handle) != FERRULE_OK) {
            return;
        }
        overlaps += inside;
        inside++;
        k_msleep(2);
        inside--;
        (*own)++;
        if (ferrule_device_close(&handle) != FERRULE_OK ||
            ferrule_device_deactivate(&handle) != FERRULE_OK) {
            return;
        }
        k_msleep(1);
    }
}

static K_THREAD_STACK_ARRAY_DEFINE(stacks, 2, STACK);
static struct k_thread threads[2];

static void start(int number, k_thread_entry_t entry)
{
    k_thread_create(&threads[number], stacks[number], K_THREAD_STACK_SIZEOF(stacks[number]), entry,
                    (void *)(intptr_t)number, NULL, NULL, K_PRIO_PREEMPT(5), 0, K_NO_WAIT);
}

static void contend(void)
{
    start(0, infer);
    start(1, infer);
    (void)k_thread_join(&threads[0], K_FOREVER);
    (void)k_thread_join(&threads[1], K_FOREVER);
    expect("inferences of the first", runs[0], ROUNDS);
    expect("inferences of the second", runs[1], ROUNDS);
    expect("overlaps", overlaps, 0);
    expect("checks", npu.checks, 2 * ROUNDS);
    expect("deactivations", npu.deactivations, npu.activations);
    printk("runs=%d overlaps=%d activations=%d\n", runs[0] + runs[1], overlaps, npu.activations);
}

static void hold(void *number, void *second, void *third)
{
    ARG_UNUSED(number);
    ARG_UNUSED(second);
    ARG_UNUSED(third);
    expect("open of the holder", ferrule_device_open(&handle), FERRULE_OK);
    k_msleep(500);
    expect("close of the holder", ferrule_device_close(&handle), FERRULE_OK);
}

static void time_out(void)
{
    expect("activate", ferrule_device_activate(&handle), FERRULE_OK);
    start(0, hold);
    k_msleep(50);

    const int64_t begin = k_uptime_get();

    expect("open of the waiter", ferrule_device_open(&handle), FERRULE_ERR_TIMEOUT);
    expect("it waited", k_uptime_get() - begin >= CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS, true);
    expect("close of another's", ferrule_device_close(&handle), FERRULE_ERR_OWNER);
    expect("destroy of another's", ferrule_device_destroy(&handle), FERRULE_ERR_BUSY);
    (void)k_thread_join(&threads[0], K_FOREVER);
    expect("open at last", ferrule_device_open(&handle), FERRULE_OK);
    expect("open again", ferrule_device_open(&handle), FERRULE_ERR_STATE);
    expect("close at last", ferrule_device_close(&handle), FERRULE_OK);
    expect("deactivate", ferrule_device_deactivate(&handle), FERRULE_OK);
}

static K_SEM_DEFINE(interrupted, 0, 1);

static void in_interrupt(struct k_timer *timer)
{
    ARG_UNUSED(timer);
    expect("open in an interrupt", ferrule_device_open(&handle), FERRULE_ERR_INTERRUPT);
    expect("destroy in an interrupt", ferrule_device_destroy(&handle), FERRULE_ERR_INTERRUPT);
    k_sem_give(&interrupted);
}

static K_TIMER_DEFINE(interrupt, in_interrupt, NULL);

static void power(void)
{
    enum pm_device_state state = PM_DEVICE_STATE_OFF;

    expect("state", pm_device_state_get(device, &state), 0);
    expect("before", state, PM_DEVICE_STATE_SUSPENDED);
    expect("activate", ferrule_device_activate(&handle), FERRULE_OK);
    expect("activate again", ferrule_device_activate(&handle), FERRULE_OK);
    (void)pm_device_state_get(device, &state);
    expect("meanwhile", state, PM_DEVICE_STATE_ACTIVE);
    expect("deactivate", ferrule_device_deactivate(&handle), FERRULE_OK);
    (void)pm_device_state_get(device, &state);
    expect("still", state, PM_DEVICE_STATE_ACTIVE);
    expect("deactivate again", ferrule_device_deactivate(&handle), FERRULE_OK);
    (void)pm_device_state_get(device, &state);
    expect("afterwards", state, PM_DEVICE_STATE_SUSPENDED);
}

int main(void)
{
    expect("open before init", ferrule_device_open(&handle), FERRULE_ERR_HANDLE);
    expect("init", ferrule_device_init(&handle), FERRULE_OK);
    expect("bind of nothing", ferrule_device_bind(&handle, NULL, &driver, &npu),
           FERRULE_ERR_ARGUMENT);
    expect("bind", ferrule_device_bind(&handle, device, &driver, &npu), FERRULE_OK);
    expect("open of what is inactive", ferrule_device_open(&handle), FERRULE_ERR_STATE);

    power();
    contend();
    time_out();
    k_timer_start(&interrupt, K_MSEC(1), K_NO_WAIT);
    expect("interrupt", k_sem_take(&interrupted, K_SECONDS(1)), 0);

    expect("destroy", ferrule_device_destroy(&handle), FERRULE_OK);
    expect("open of what is destroyed", ferrule_device_open(&handle), FERRULE_ERR_HANDLE);
    printk("%s\n", failures == 0 ? "PASS" : "FAIL");
    return 0;
}
