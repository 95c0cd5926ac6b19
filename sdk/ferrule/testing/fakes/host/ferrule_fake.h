/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What a test sees of the fakes: a record of their calls, rules that change them, threads and
 * time. ferrule.testing reads this file and drives it from Python.
 *
 * Time is virtual: a call takes a microsecond, and when every thread waits in a fake, the clock
 * goes to whatever comes next. So a time-out of an hour is reached at once, and always at the same
 * place.
 */
#ifndef FERRULE_FAKE_H
#define FERRULE_FAKE_H

#include <stdint.h>

enum { FERRULE_FAKE_ARGUMENTS = 4, FERRULE_FAKE_NAME = 48, FERRULE_FAKE_TEXT = 240 };

/** A call of a fake. */
struct ferrule_fake_call {
    const char *name;
    const void *object; /* what it was a call on, or NULL */
    int64_t arguments[FERRULE_FAKE_ARGUMENTS];
    uint32_t argument_count;
    uint32_t thread; /* counted from 1 */
    uint32_t in_interrupt;
    uint32_t returned;
    int64_t result;
    uint64_t time_us; /* when it began */
};

/** What is different about some calls. */
struct ferrule_fake_rule {
    char name[FERRULE_FAKE_NAME];
    const void *object; /* NULL: whatever it is a call on */
    uint32_t pass;      /* so many calls are left alone first */
    uint32_t times;     /* so many are then concerned */
    uint32_t replaces;  /* not 0: the call does nothing and gives `result` */
    int64_t result;
    uint32_t before; /* number for the hook before the call, 0: none */
    uint32_t after;
    uint32_t interrupts; /* not 0: the hooks run in an interrupt */
};

/** Called with the number from a rule or an event. */
typedef void (*ferrule_fake_hook)(uint32_t number);

/** Forget everything: calls, rules, events, threads, ports. */
void ferrule_fake_reset(ferrule_fake_hook hook);

uint32_t ferrule_fake_call_count(void);
/** Copies, since the record moves as it grows. */
void ferrule_fake_call(uint32_t index, struct ferrule_fake_call *call);
void ferrule_fake_forget_calls(void);
/** Put a call of something that is no fake into the record; `name` stays the caller's. */
void ferrule_fake_note(const char *name, const void *object, int64_t result);

void ferrule_fake_add_rule(const struct ferrule_fake_rule *rule);
void ferrule_fake_forget_rules(void);

/** What the code under test did that the real functions forbid. */
uint32_t ferrule_fake_misuse_count(void);
const char *ferrule_fake_misuse(uint32_t index);
void ferrule_fake_forget_misuses(void);

uint64_t ferrule_fake_now_us(void);
/** Let time pass, with what happens in it. */
void ferrule_fake_advance(uint64_t us);
/** Have the hook called in an interrupt at that time from now. */
void ferrule_fake_schedule(uint64_t after_us, uint32_t number);

/** How long a thread may wait in real time for others, which do something else than wait too. */
void ferrule_fake_set_patience(uint32_t ms);

/** From here on the calling host thread is this one, until it is another; 0: itself. */
void ferrule_fake_become(uint32_t thread);
/** So many threads are about to begin: time waits for them. */
void ferrule_fake_expect(uint32_t threads);
void ferrule_fake_thread_begins(uint32_t thread);
void ferrule_fake_thread_ends(void);
/** The calling thread waits for something that is not a fake, or no longer. */
void ferrule_fake_idle(uint32_t idle);

void ferrule_fake_enter_interrupt(void);
void ferrule_fake_leave_interrupt(void);

/** Bytes come over the wire of a serial port. */
void ferrule_fake_receive(uint32_t port, const uint8_t *data, uint32_t bytes);
/** Take what was sent since; returns how many bytes there were. */
uint32_t ferrule_fake_sent(uint32_t port, uint8_t *data, uint32_t bytes);
/** Have the hook called when bytes were sent; 0: no longer. */
void ferrule_fake_on_sent(uint32_t port, uint32_t number);

/** Write out the counters of a build for coverage; 0 if this is none. */
uint32_t ferrule_fake_dump_coverage(void);

#endif /* FERRULE_FAKE_H */
