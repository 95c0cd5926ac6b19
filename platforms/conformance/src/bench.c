/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stddef.h>

#include "ferrule/held.h"
#include "report.h"

#define CALIBRATION_US 20000u
#define PATIENCE_MS    8000u /* longer than anything that a thread waits for */

struct bench_device bench_devices[BENCH_DEVICES];

static struct bench_device *volatile working;
static void (*volatile on_interrupt)(void);
static uint32_t loops_per_ms;
static conformance_body bodies[CONFORMANCE_THREADS];
static volatile bool has_ended[CONFORMANCE_THREADS];

static int32_t submit(void *context, const void *command)
{
    const uint32_t *us = command;

    bench_work(context, *us);
    return FERRULE_OK;
}

static bool is_over(void *context)
{
    return ((const struct bench_device *)context)->is_over;
}

static int32_t finish(void *context)
{
    (void)context;
    return FERRULE_OK;
}

static int32_t stop(void *context)
{
    return ((const struct bench_device *)context)->is_deaf ? FERRULE_ERR_DEVICE : FERRULE_OK;
}

static uint32_t poll_us(void *context)
{
    (void)context;
    return FERRULE_WAIT_DEFAULT;
}

const struct ferrule_driver bench_driver = {
    .name = "timer",
    .is_passive = true,
    .submit = submit,
    .is_over = is_over,
    .poll_us = poll_us,
    .finish = finish,
    .abort = stop,
};

uint32_t bench_tick_us(void)
{
    return 1000000u / conformance_tick_hz;
}

uint32_t bench_since(uint32_t begin)
{
    return conformance_now_us() - begin;
}

static void loop(uint32_t count)
{
    for (volatile uint32_t i = 0; i < count; i++) {
    }
}

static void calibrate(void)
{
    const uint32_t begin = conformance_now_us();
    uint32_t count = 0;

    while (bench_since(begin) < CALIBRATION_US) {
        loop(100);
        count += 100u;
    }
    loops_per_ms = count / (CALIBRATION_US / 1000u);
}

void bench_burn(uint32_t us)
{
    loop((uint32_t)((uint64_t)us * loops_per_ms / 1000u));
}

void bench_work(struct bench_device *device, uint32_t us)
{
    device->is_over = false;
    working = device;
    conformance_alarm(us);
}

int32_t bench_wait(struct bench_device *device, uint32_t timeout_us)
{
    return ferrule_device_wait(&device->handle, is_over, timeout_us);
}

void bench_interrupt(void (*action)(void))
{
    on_interrupt = action;
}

void conformance_interrupt(void)
{
    struct bench_device *device = working;

    if (on_interrupt != NULL) {
        on_interrupt();
    } else if (device != NULL) {
        device->is_over = true;
        ferrule_device_notify(&device->handle);
    }
}

static void enter(uint32_t thread)
{
    bodies[thread](thread);
    has_ended[thread] = true;
}

void bench_spawn(uint32_t thread, conformance_body body, uint32_t priority)
{
    bodies[thread] = body;
    has_ended[thread] = false;
    conformance_spawn(thread, enter, priority);
}

void bench_join(uint32_t thread)
{
    const uint32_t begin = conformance_now_us();

    while (!has_ended[thread]) {
        conformance_sleep(5);
        if (bench_since(begin) > PATIENCE_MS * 1000u) {
            report_number("threads that ended", 0, 1, 1);
            report_end();
            for (;;) {
                conformance_sleep(1000);
            }
        }
    }
    conformance_sleep(5u +
                      bench_tick_us() * 3u / 1000u); /* kernels clean up in their idle thread */
}

int32_t bench_run(struct bench_device *device, uint32_t work_us, void (*took)(uint32_t thread),
                  uint32_t thread)
{
    static const uint32_t all[1] = {0};
    ferrule_device_t *const handles[1] = {&device->handle};
    struct ferrule_held_entry entries[FERRULE_HELD_PER_DEVICE];
    struct ferrule_held held = {
        .handles = handles, .entries = entries, .capacity = FERRULE_HELD_PER_DEVICE};
    int32_t status = ferrule_held_begin(&held, NULL);

    if (status == FERRULE_OK) {
        status = ferrule_held_next(&held, 0);
    }
    if (status == FERRULE_OK) {
        status = ferrule_held_activate(&held, 0);
    }
    if (status == FERRULE_OK) {
        status = ferrule_held_open_set(&held, all, 1);
    }
    if (status == FERRULE_OK) {
        if (took != NULL) {
            took(thread);
        }
        status = ferrule_device_submit(&device->handle, &bench_driver, &work_us);
        status = ferrule_held_ran(&held, 0, status);
    }
    if (status == FERRULE_OK) {
        status = ferrule_held_finish(&held, 0, 0, FERRULE_WAIT_DEFAULT);
    }
    return ferrule_held_end(&held, status);
}

void bench_begin(void)
{
    calibrate();
    for (uint32_t i = 0; i < BENCH_DEVICES; i++) {
        struct bench_device *device = &bench_devices[i];

        report_group(i == 0u ? "begin" : "begin of another");
        report_status("init", ferrule_device_init(&device->handle), FERRULE_OK);
        report_status("init again", ferrule_device_init(&device->handle), FERRULE_ERR_STATE);
        report_status("bind", conformance_bind(&device->handle, &bench_driver, device), FERRULE_OK);
        report_status("activate", ferrule_device_activate(&device->handle), FERRULE_OK);
    }
}

void check_end(void)
{
    for (uint32_t i = 0; i < BENCH_DEVICES; i++) {
        ferrule_device_t *handle = &bench_devices[i].handle;

        report_group(i == 0u ? "end" : "end of another");
        report_status("deactivate", ferrule_device_deactivate(handle), FERRULE_OK);
        report_status("destroy", ferrule_device_destroy(handle), FERRULE_OK);
        report_status("init of a destroyed handle", ferrule_device_init(handle), FERRULE_OK);
        report_status("destroy again", ferrule_device_destroy(handle), FERRULE_OK);
    }
}

void conformance_judge(uint32_t thread)
{
    (void)thread;
    report_begin();
    check_before_the_kernel();
    bench_begin();
    check_order();
    check_time();
    check_interrupts();
    check_cancel();
    check_inversion();
    check_fairness();
    check_deadlock();
    check_loss();
    check_end();
    report_end();
    for (;;) {
        conformance_sleep(1000);
    }
}
