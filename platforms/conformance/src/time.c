/* SPDX-License-Identifier: Apache-2.0 */
/* The clock and the waits for a device: a wait ends no earlier than its limit and at most a tick
 * later, and other threads run meanwhile. */
#include "bench.h"

#include "ferrule/platform.h"
#include "report.h"

#define WORK_US  50000u
#define LIMIT_US 30000u
#define LONG_US  0x7FFFFFFFu /* the longest limit */
#define PHASES   5u          /* parts of a tick at which a wait begins */

static struct bench_device *const device = &bench_devices[0];
static volatile uint32_t loops;
static volatile bool must_end;

static void count_loops(uint32_t thread)
{
    (void)thread;
    while (!must_end) {
        loops++;
    }
}

static void check_clock(void)
{
    const uint32_t begin = conformance_now_us();
    const uint32_t platform = ferrule_platform_now_us();
    uint32_t error;

    conformance_sleep(200);
    error = ferrule_platform_now_us() - platform - bench_since(begin);
    error = error > INT32_MAX ? 0u - error : error;
    report_number("error of the clock in us", error, 0, bench_tick_us() + BENCH_SLACK_US);
}

/* A thread of the lowest priority gets nearly as much of the core as while the judge sleeps.
 * Returns whether the interrupt ended the wait. */
static bool check_sleep(void)
{
    uint32_t begin;
    uint32_t before;
    uint32_t share;
    uint32_t took;
    int32_t status;

    bench_spawn(0, count_loops, 1);
    conformance_sleep(2u + bench_tick_us() / 1000u);
    begin = conformance_now_us();
    before = loops;
    conformance_sleep(WORK_US / 1000u);
    before = (loops - before) / (bench_since(begin) / 1000u); /* in a millisecond */
    share = loops;
    bench_work(device, WORK_US);
    begin = conformance_now_us();
    status = bench_wait(device, 1000000u);
    took = bench_since(begin);
    report_number("wait for an interrupt in us", took, WORK_US - BENCH_SLACK_US,
                  WORK_US + BENCH_SLACK_US);
    share = (loops - share) / (bench_since(begin) / 1000u);
    report_status("wait for an interrupt", status, FERRULE_OK);
    report_number("percent of the core for others meanwhile", share * 100u / before, 90, 110);
    must_end = true;
    bench_join(0);
    return took <= WORK_US + BENCH_SLACK_US; /* a wait that ends with its limit looks once more */
}

/* Returns how long a wait took for which there is no end. */
static uint32_t wait_in_vain(uint32_t limit_us, int32_t *status)
{
    const uint32_t begin = conformance_now_us();

    device->is_over = false;
    *status = bench_wait(device, limit_us);
    return bench_since(begin);
}

static void check_limits(void)
{
    const uint32_t tick = bench_tick_us();
    const uint32_t limits[] = {1, tick / 2u, tick, tick + 1u, 3u * tick - 1u, LIMIT_US};
    uint32_t early = 0;
    uint32_t late = 0;
    uint32_t others = 0;

    for (uint32_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        for (uint32_t phase = 0; phase < PHASES; phase++) {
            int32_t status;
            uint32_t took;

            conformance_sleep(1); /* until a tick */
            bench_burn(tick / PHASES * phase);
            took = wait_in_vain(limits[i], &status);
            others += status == FERRULE_ERR_TIMEOUT ? 0u : 1u;
            if (took < limits[i] && limits[i] - took > early) {
                early = limits[i] - took;
            }
            if (took > limits[i] && took - limits[i] > late) {
                late = took - limits[i];
            }
        }
    }
    report_number("statuses of waits in vain other than TIMEOUT", others, 0, 0);
    report_number("wait ends before its limit in us", early, 0, 0);
    report_number("wait ends after its limit in us", late, 0, tick + BENCH_SLACK_US);
}

static void notify_often(void)
{
    for (int i = 0; i < 20; i++) {
        ferrule_device_notify(&device->handle);
    }
}

/* `notifies`: an interrupt ends a wait. */
static void check_notifications(bool notifies)
{
    uint32_t begin;
    uint32_t took;
    int32_t status;

    bench_work(device, 1000);
    bench_burn(5000);
    begin = conformance_now_us();
    status = bench_wait(device, 1000000u);
    report_number("wait after the interrupt in us", bench_since(begin), 0, BENCH_SLACK_US);
    report_status("wait after the interrupt", status, FERRULE_OK);
    took = wait_in_vain(LIMIT_US, &status);
    report_status("wait after an old notification", status, FERRULE_ERR_TIMEOUT);
    report_number("wait after an old notification in us", took, LIMIT_US,
                  LIMIT_US + bench_tick_us() + BENCH_SLACK_US);
    bench_interrupt(notify_often);
    bench_work(device, 2000);
    took = wait_in_vain(LIMIT_US, &status);
    bench_interrupt(NULL);
    report_status("wait with 20 early notifications", status, FERRULE_ERR_TIMEOUT);
    report_number("wait with 20 early notifications in us", took, LIMIT_US,
                  LIMIT_US + bench_tick_us() + BENCH_SLACK_US);
    begin = conformance_now_us();
    bench_work(device, LIMIT_US);
    /* without notifications, the longest wait would take more than half an hour */
    status = bench_wait(device, notifies ? LONG_US : LIMIT_US);
    report_status("wait with the longest limit", status, FERRULE_OK);
    report_number("wait with the longest limit in us", bench_since(begin),
                  LIMIT_US - BENCH_SLACK_US, LIMIT_US + BENCH_SLACK_US);
}

void check_time(void)
{
    bool notifies;

    report_group("time");
    report_status("open", ferrule_device_open(&device->handle), FERRULE_OK);
    check_clock();
    notifies = check_sleep();
    check_limits();
    check_notifications(notifies);
    report_status("close", ferrule_device_close(&device->handle), FERRULE_OK);
}
