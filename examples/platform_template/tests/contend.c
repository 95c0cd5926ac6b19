/* SPDX-License-Identifier: Apache-2.0 */
/** @file Two tasks contend for one device; the program prints the statuses and the counts. */
#include "ferrule/platform/freertos.h"
#include "task.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { RUNS = 20 };

static ferrule_device_t npu0;
static atomic_int inside;
static atomic_int overlaps;
static atomic_int errors;
static int32_t foreign[3]; /* statuses of a stranger: open, close, open in an interrupt */
static int32_t waits[5];

static void work(void)
{
    const struct timespec pause = {.tv_nsec = 200000};

    if (atomic_fetch_add(&inside, 1) > 0) {
        atomic_fetch_add(&overlaps, 1);
    }
    nanosleep(&pause, NULL);
    atomic_fetch_sub(&inside, 1);
}

static int32_t once(void)
{
    int32_t status = ferrule_device_activate(&npu0);
    int32_t ended;

    if (status != FERRULE_OK) {
        return status;
    }
    status = ferrule_device_open(&npu0);
    if (status == FERRULE_OK) {
        work();
        status = ferrule_device_close(&npu0);
    }
    ended = ferrule_device_deactivate(&npu0);
    return status != FERRULE_OK ? status : ended;
}

static void *task(void *unused)
{
    fake_be(1);
    for (int i = 0; i < RUNS; i++) {
        if (once() != FERRULE_OK) {
            atomic_fetch_add(&errors, 1);
        }
    }
    return unused;
}

static void *stranger(void *unused)
{
    fake_be(1);
    foreign[0] = ferrule_device_open(&npu0);
    foreign[1] = ferrule_device_close(&npu0);
    fake_be(2);
    foreign[2] = ferrule_device_open(&npu0);
    return unused;
}

/* The device's interrupt, some time after a task began to wait. */
static void *interrupt(void *unused)
{
    const struct timespec pause = {.tv_nsec = 5000000};

    nanosleep(&pause, NULL);
    fake_be(2);
    (void)ferrule_platform_now_us(); /* any context */
    ferrule_device_notify(&npu0);
    return unused;
}

static void run(void *(*function)(void *), int count)
{
    pthread_t threads[2];

    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, function, NULL);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void *waiter(void *unused)
{
    const uint32_t begin = ferrule_platform_now_us();
    pthread_t device;

    fake_be(1);
    pthread_create(&device, NULL, interrupt, NULL);
    waits[0] = ferrule_platform_wait(&npu0, 10000000u); /* ended by the interrupt */
    pthread_join(device, NULL);
    waits[1] = ferrule_platform_now_us() - begin < 10000000u ? 0 : 1;
    ferrule_device_notify(&npu0);
    ferrule_device_notify(&npu0);
    waits[2] = ferrule_platform_wait(&npu0, 10000000u); /* over at once, and once only */
    waits[3] = ferrule_platform_wait(&npu0, 1001u) == FERRULE_ERR_TIMEOUT ? 0 : 1;
    waits[4] = (int32_t)fake_ticks; /* at least 1001 microseconds, wherever in a tick they begin */
    return unused;
}

static void say(const char *call, int32_t status)
{
    printf("%s %d\n", call, (int)status);
}

int main(void)
{
    static const struct ferrule_driver driver = {.name = "npu", .is_passive = true};

    say("init", ferrule_device_init(&npu0));
    say("bind", ferrule_device_bind(&npu0, &driver, NULL));
    run(task, 2);
    say("errors", errors);
    say("overlaps", overlaps);
    say("activate", ferrule_device_activate(&npu0));
    say("open", ferrule_device_open(&npu0));
    run(stranger, 1);
    say("foreign open", foreign[0]);
    say("foreign close", foreign[1]);
    say("interrupt", foreign[2]);
    run(waiter, 1);
    say("notified", waits[0]);
    say("too late", waits[1]);
    say("notified before", waits[2]);
    say("notified twice", waits[3]);
    say("ticks", waits[4]);
    say("cut", ferrule_platform_cut(&npu0));
    say("close", ferrule_device_close(&npu0));
    say("deactivate", ferrule_device_deactivate(&npu0));
    say("destroy", ferrule_device_destroy(&npu0));
    return 0;
}
