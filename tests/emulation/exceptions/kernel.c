/* SPDX-License-Identifier: Apache-2.0 */
/* A small preemptive kernel: tasks on process stacks, switched by PendSV with their
 * floating-point registers, and woken by SysTick; a mutex and sleep are supervisor calls. The
 * trace holds every switch with its tick, which does not depend on the speed of execution. */
#include "trace.h"

enum { TASKS = 4, STACK_WORDS = 256, SVC_SLEEP = 1, SVC_LOCK = 2, SVC_UNLOCK = 3, SVC_EXIT = 4 };
enum { TICK = 25000 };

struct task {
    uint32_t *stack; /* the saved registers while the task does not run */
    const char *name;
    uint32_t wake_at;
    uint32_t waits_for_mutex;
    uint32_t ended;
    uint32_t words[STACK_WORDS] __attribute__((aligned(8)));
};

static struct task tasks[TASKS]; /* the first is the most urgent, the last never waits */
static struct task *volatile current;
static struct task *volatile next;
static struct task *owner;
static volatile uint32_t now;

static int is_ready(const struct task *task)
{
    return !task->ended && task->wake_at <= now && !task->waits_for_mutex;
}

static void schedule(void)
{
    for (uint32_t i = 0; i < TASKS; ++i) {
        if (is_ready(&tasks[i])) {
            if (&tasks[i] != current) {
                next = &tasks[i];
                ICSR = PEND_PENDSV;
                barrier();
            }
            return;
        }
    }
}

__attribute__((used)) static uint32_t *switch_task(uint32_t *stack)
{
    current->stack = stack;
    if (next != current) {
        say(current->name);
        say(" -> ");
        note(next->name, now);
    }
    current = next;
    return current->stack;
}

__attribute__((naked)) static void pendsv(void)
{
    __asm volatile("mrs r0, psp\n\t"
#if defined(__ARM_FP)
                   "tst lr, #16\n\tit eq\n\tvstmdbeq r0!, {s16-s31}\n\t"
#endif
                   "stmdb r0!, {r4-r11, lr}\n\t"
                   "bl switch_task\n\t"
                   "ldmia r0!, {r4-r11, lr}\n\t"
#if defined(__ARM_FP)
                   "tst lr, #16\n\tit eq\n\tvldmiaeq r0!, {s16-s31}\n\t"
#endif
                   "msr psp, r0\n\tbx lr\n\t");
}

static void systick(void)
{
    ++now;
    schedule();
}

__attribute__((used)) static void served(const uint32_t *frame, uint32_t exc_return)
{
    (void)exc_return;
    switch (((const uint8_t *)frame[6])[-2]) {
    case SVC_SLEEP:
        current->wake_at = now + frame[0];
        break;
    case SVC_LOCK:
        if (owner == 0) {
            owner = current;
        } else {
            current->waits_for_mutex = 1;
        }
        break;
    case SVC_UNLOCK:
        owner = 0;
        for (uint32_t i = 0; i < TASKS && owner == 0; ++i) {
            if (tasks[i].waits_for_mutex) {
                tasks[i].waits_for_mutex = 0;
                owner = &tasks[i];
            }
        }
        break;
    default:
        current->ended = 1;
        break;
    }
    schedule();
}
HANDLER_WITH_FRAME(svcall, served)

#define SERVICE(number, argument)                                                                  \
    do {                                                                                           \
        register uint32_t r0 __asm("r0") = (argument);                                             \
        __asm volatile("svc %1" : "+r"(r0) : "i"(number) : "memory");                              \
    } while (0)

#if defined(__ARM_FP)
#define WORK(sum, i) ((sum) += 0.5f * (float)(i))
typedef float number;
#else
#define WORK(sum, i) ((sum) += 3u * (i))
typedef uint32_t number;
#endif

/* Lock, work, sleep with the mutex held, work again and sleep without it. */
static void worker(uint32_t rounds, uint32_t pause, uint32_t hold)
{
    number sum = 0;
    for (uint32_t i = 0; i < rounds; ++i) {
        SERVICE(SVC_LOCK, 0);
        say(current->name);
        note(" has it", now);
        WORK(sum, i);
        if (hold != 0) {
            SERVICE(SVC_SLEEP, hold);
        }
        SERVICE(SVC_UNLOCK, 0);
        WORK(sum, i);
        SERVICE(SVC_SLEEP, pause);
    }
    say(current->name);
    note(" sum", (uint32_t)sum);
    SERVICE(SVC_EXIT, 0);
}

static void fast(void)
{
    worker(9, 3, 0);
}

static void middle(void)
{
    worker(6, 5, 2);
}

static void slow(void)
{
    worker(4, 7, 4);
}

static void idle(void)
{
    while (!tasks[0].ended || !tasks[1].ended || !tasks[2].ended) {
        __asm volatile("wfi");
    }
    CSR = 0;
    note("end", now);
    end();
}

static void make(struct task *task, const char *name, void (*function)(void))
{
    uint32_t *stack = task->words + STACK_WORDS - 17;
    task->name = name;
    stack[8] = 0xFFFFFFFDu; /* EXC_RETURN */
    stack[9 + 6] = (uint32_t)function & ~1u;
    stack[9 + 7] = 1u << 24;
    task->stack = stack;
}

int main(void)
{
    begin();
    handle(SVCALL, svcall);
    handle(PENDSV, pendsv);
    handle(SYSTICK, systick);
    SHPR[PENDSV] = 0xFF;
    SHPR[SYSTICK] = 0xE0;
    SHPR[SVCALL] = 0xC0;
    make(&tasks[0], "fast", fast);
    make(&tasks[1], "middle", middle);
    make(&tasks[2], "slow", slow);
    make(&tasks[3], "idle", idle);
    current = &tasks[3];
    next = &tasks[0];
    RVR = TICK - 1;
    CVR = 0;
    CSR = 7;
    __asm volatile("msr psp, %0" ::"r"(tasks[3].words + STACK_WORDS));
    set_control(2);
    ICSR = PEND_PENDSV;
    barrier();
    for (;;) { /* from here on the process stack belongs to the idle task */
        idle();
    }
}
