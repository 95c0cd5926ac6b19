/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that always want the device get it in turns. */
#include "bench.h"

#include <stddef.h>

#include "report.h"

enum { MOST = 3, ROUNDS = 20 };

static struct bench_device *const device = &bench_devices[0];

static struct {
    uint32_t threads;
    uint32_t hold_ms;
    uint32_t counted; /* turns from the beginning, of all */
    uint32_t turns[MOST];
    uint32_t difference; /* the largest */
    uint32_t failures;
    uint32_t passed_over;
} contest;
static volatile bool must_end;
static volatile bool high_wants;  /* it waits, or is about to */
static volatile bool high_wanted; /* when the previous holder got the device */

static uint32_t difference(void)
{
    uint32_t least = contest.turns[0];
    uint32_t most = contest.turns[0];

    for (uint32_t i = 1; i < contest.threads; i++) {
        least = contest.turns[i] < least ? contest.turns[i] : least;
        most = contest.turns[i] > most ? contest.turns[i] : most;
    }
    return most - least;
}

/* Called by the thread that has the device. The first turns do not count: the others may not have
 * begun to wait. */
static void took(uint32_t thread)
{
    contest.counted++;
    if (contest.counted > contest.threads) {
        contest.turns[thread]++;
        contest.difference = difference() > contest.difference ? difference() : contest.difference;
    }
    if (contest.counted >= contest.threads * (ROUNDS + 1u)) {
        must_end = true;
    }
}

static void note(int32_t status)
{
    contest.failures += status == FERRULE_OK ? 0u : 1u;
}

/* A program's own thread. */
static void opener(uint32_t thread)
{
    while (!must_end) {
        const int32_t status = ferrule_device_open(&device->handle);

        note(status);
        if (status == FERRULE_OK) {
            took(thread);
            conformance_sleep(contest.hold_ms);
            note(ferrule_device_close(&device->handle));
        }
    }
}

/* A thread that runs a model. */
static void executor(uint32_t thread)
{
    while (!must_end) {
        note(bench_run(device, contest.hold_ms * 1000u, took, thread));
    }
}

static void begin(uint32_t threads, uint32_t hold_ms)
{
    contest.threads = threads;
    contest.hold_ms = hold_ms;
    contest.counted = 0;
    contest.difference = 0;
    contest.failures = 0;
    contest.passed_over = 0;
    for (uint32_t i = 0; i < MOST; i++) {
        contest.turns[i] = 0;
    }
    must_end = false;
    high_wanted = false;
}

static void end(const char *group)
{
    static const char *const names[MOST] = {"turns of the first", "turns of the second",
                                            "turns of the third"};

    for (uint32_t i = 0; i < contest.threads; i++) {
        bench_join(i);
    }
    report_group(group);
    for (uint32_t i = 0; i < contest.threads; i++) {
        report_note(names[i], contest.turns[i]);
    }
    report_number("failures", contest.failures, 0, 0);
}

static void check(const char *group, uint32_t threads, uint32_t openers, uint32_t hold_ms)
{
    begin(threads, hold_ms);
    for (uint32_t i = 0; i < threads; i++) {
        bench_spawn(i, i < openers ? opener : executor, 3);
    }
    end(group);
    report_number("largest difference of turns", contest.difference, 0, 1);
}

/* With the device. If the thread of high priority has waited for a whole turn, this one has passed
 * it over. */
static void took_low(uint32_t thread)
{
    contest.passed_over += high_wanted ? 1u : 0u;
    took(thread);
    high_wanted = high_wants;
}

static void low(uint32_t thread)
{
    while (!must_end) {
        note(bench_run(device, contest.hold_ms * 1000u, took_low, thread));
    }
}

static void took_high(uint32_t thread)
{
    high_wants = false;
    high_wanted = false;
    took(thread);
}

static void high(uint32_t thread)
{
    while (!must_end) {
        high_wants = true;
        note(bench_run(device, contest.hold_ms * 1000u, took_high, thread));
    }
    high_wants = false;
}

static void check_priority(void)
{
    begin(MOST, 15);
    bench_spawn(0, low, 2);
    bench_spawn(1, low, 2);
    bench_spawn(2, high, 5);
    end("fairness of priorities");
    report_number("times that the high one was passed over", contest.passed_over, 0, 0);
}

void check_fairness(void)
{
    check("fairness of two openers", 2, 2, 15);
    check("fairness of three openers", 3, 3, 15);
    check("fairness of two executors", 2, 0, 15);
    check("fairness of three executors", 3, 0, 15);
    check("fairness of three executors with long runs", 3, 0, 40);
    check("fairness of two openers and an executor", 3, 2, 15);
    check_priority();
}
