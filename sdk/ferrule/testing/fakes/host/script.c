/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "fake_kernel.h"

enum { MAX_MISUSES = 16 };

static struct {
    struct ferrule_fake_call *calls;
    uint32_t call_count, call_room;
    struct ferrule_fake_rule *rules;
    uint32_t rule_count, rule_room;
    char misuses[MAX_MISUSES][FERRULE_FAKE_TEXT];
    uint32_t misuse_count;
    uint64_t forgotten; /* number of calls before the first recorded one */
    ferrule_fake_hook hook;
} script;

/* Makes space for one more entry; on a host, memory is assumed to be sufficient. */
static void *grown(void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) {
        return array;
    }
    *room = *room == 0u ? 64u : 2u * *room;
    void *more = realloc(array, *room * size);
    if (more == NULL) {
        abort();
    }
    return more;
}

static const struct ferrule_fake_rule *concerned(const char *name, const void *object)
{
    const struct ferrule_fake_rule *found = NULL;
    for (uint32_t index = 0; index < script.rule_count; index++) {
        struct ferrule_fake_rule *rule = &script.rules[index];
        if (strcmp(rule->name, name) != 0 || (rule->object != NULL && rule->object != object)) {
            continue;
        }
        if (rule->pass > 0u) {
            rule->pass--;
        } else if (rule->times > 0u && found == NULL) {
            rule->times -= rule->times != UINT32_MAX;
            found = rule;
        }
    }
    return found;
}

struct fake_call fake_begin(const char *name, const void *object, const int64_t *arguments,
                            uint32_t count)
{
    fake_run_events();
    fake_lock();
    struct ferrule_fake_rule rule = {0};
    const struct ferrule_fake_rule *found = concerned(name, object);
    if (found != NULL) {
        rule = *found;
    }
    fake_unlock();
    if (rule.before != 0u) {
        fake_call_hook(rule.before, rule.interrupts != 0u);
    }
    fake_lock();
    script.calls = grown(script.calls, script.call_count, &script.call_room, sizeof *script.calls);
    struct ferrule_fake_call *record = &script.calls[script.call_count];
    *record = (struct ferrule_fake_call){
        .name = name,
        .object = object,
        .argument_count = count,
        .thread = fake_thread(),
        .in_interrupt = fake_in_interrupt(),
        .time_us = fake_tick(),
    };
    memcpy(record->arguments, arguments + 1, count * sizeof *arguments);
    struct fake_call call = {
        .name = name,
        .serial = script.forgotten + script.call_count,
        .replaced = rule.replaces != 0u,
        .after = rule.after,
        .interrupting = rule.interrupts != 0u,
        .result = rule.result,
    };
    script.call_count++;
    fake_unlock();
    return call;
}

int64_t fake_end(const struct fake_call *call)
{
    fake_lock();
    if (call->serial >= script.forgotten) {
        struct ferrule_fake_call *record = &script.calls[call->serial - script.forgotten];
        record->result = call->result;
        record->returned = 1u;
    }
    fake_unlock();
    if (call->after != 0u) {
        fake_call_hook(call->after, call->interrupting);
    }
    return call->result;
}

void ferrule_fake_note(const char *name, const void *object, int64_t result)
{
    struct fake_call call = fake_begin(name, object, (const int64_t[]){0}, 0);
    call.result = result;
    (void)fake_end(&call);
}

void fake_call_hook(uint32_t number, bool as_interrupt)
{
    if (as_interrupt) {
        ferrule_fake_enter_interrupt();
    }
    if ((number & FAKE_OWN_EVENT) != 0u) {
        fake_platform_event(number);
    } else {
        script.hook(number);
    }
    if (as_interrupt) {
        ferrule_fake_leave_interrupt();
    }
}

void fake_misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const uint32_t index = __atomic_fetch_add(&script.misuse_count, 1u, __ATOMIC_RELAXED);
    if (index < MAX_MISUSES) {
        (void)vsnprintf(script.misuses[index], FERRULE_FAKE_TEXT, format, arguments);
    }
    va_end(arguments);
}

bool fake_refuses_interrupt(const char *name)
{
    if (!fake_in_interrupt()) {
        return false;
    }
    fake_misuse("%s was called in an interrupt", name);
    return true;
}

void ferrule_fake_reset(ferrule_fake_hook hook)
{
    script.hook = hook;
    ferrule_fake_forget_calls();
    ferrule_fake_forget_rules();
    ferrule_fake_forget_misuses();
    fake_reset_balance();
    fake_reset_threads();
    fake_reset_kernel();
    fake_reset_ports();
    fake_reset_platform();
}

/* The linker defines the ends of the list. */
#ifdef __APPLE__
extern const char *const first_function __asm("section$start$__DATA$ferrule_fakes");
extern const char *const last_function __asm("section$end$__DATA$ferrule_fakes");
#define FIRST (&first_function)
#define END   (&last_function)
#else
extern __attribute__((visibility("hidden"))) const char *const __start_ferrule_fakes[];
extern __attribute__((visibility("hidden"))) const char *const __stop_ferrule_fakes[];
#define FIRST (__start_ferrule_fakes)
#define END   (__stop_ferrule_fakes)
#endif

uint32_t ferrule_fake_function_count(void)
{
    return (uint32_t)(END - FIRST);
}

const char *ferrule_fake_function(uint32_t index)
{
    return FIRST[index];
}

uint32_t ferrule_fake_call_count(void)
{
    return script.call_count;
}

void ferrule_fake_call(uint32_t index, struct ferrule_fake_call *call)
{
    fake_lock();
    *call = script.calls[index];
    fake_unlock();
}

void ferrule_fake_forget_calls(void)
{
    fake_lock();
    script.forgotten += script.call_count;
    script.call_count = 0;
    fake_unlock();
}

void ferrule_fake_add_rule(const struct ferrule_fake_rule *rule)
{
    fake_lock();
    script.rules = grown(script.rules, script.rule_count, &script.rule_room, sizeof *script.rules);
    script.rules[script.rule_count++] = *rule;
    fake_unlock();
}

void ferrule_fake_forget_rules(void)
{
    fake_lock();
    script.rule_count = 0;
    fake_unlock();
}

uint32_t ferrule_fake_misuse_count(void)
{
    return script.misuse_count < MAX_MISUSES ? script.misuse_count : MAX_MISUSES;
}

const char *ferrule_fake_misuse(uint32_t index)
{
    return script.misuses[index];
}

void ferrule_fake_forget_misuses(void)
{
    script.misuse_count = 0;
}

#ifdef FERRULE_FAKE_COVERAGE
void __gcov_dump(void);
void __gcov_reset(void);

uint32_t ferrule_fake_dump_coverage(void)
{
    __gcov_dump();
    __gcov_reset(); /* without it, the next dump would write nothing */
    return 1;
}
#else
uint32_t ferrule_fake_dump_coverage(void)
{
    return 0;
}
#endif
