/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A test's interface to the fakes: a record of their calls, rules that change them, threads
 * and time. ferrule.testing reads this file and calls the functions from Python.
 *
 * Time is virtual: a call takes a microsecond, and when every thread waits in a fake, the clock
 * advances to the next event. A time-out of an hour therefore expires immediately, and always at
 * the same point.
 */
#ifndef FERRULE_FAKE_H
#define FERRULE_FAKE_H

#include <stdint.h>

enum { FERRULE_FAKE_ARGUMENTS = 4, FERRULE_FAKE_NAME = 48, FERRULE_FAKE_TEXT = 240 };

/** A call of a fake. */
struct ferrule_fake_call {
    const char *name;
    const void *object; /* object of the call, or NULL */
    int64_t arguments[FERRULE_FAKE_ARGUMENTS];
    uint32_t argument_count;
    uint32_t thread; /* counted from 1 */
    uint32_t in_interrupt;
    uint32_t returned;
    int64_t result;
    uint64_t time_us; /* at the start of the call */
};

/** A rule that changes some calls. */
struct ferrule_fake_rule {
    char name[FERRULE_FAKE_NAME];
    const void *object; /* NULL: any object */
    uint32_t pass;      /* number of calls to skip first */
    uint32_t times;     /* number of calls then affected */
    uint32_t replaces;  /* not 0: the call does nothing and returns `result` */
    int64_t result;
    uint32_t before; /* hook number before the call, 0: none */
    uint32_t after;
    uint32_t interrupts; /* not 0: the hooks run in an interrupt */
};

/** Called with the number from a rule or an event. */
typedef void (*ferrule_fake_hook)(uint32_t number);

/** Reset everything: calls, rules, events, threads, ports. */
void ferrule_fake_reset(ferrule_fake_hook hook);

/** The functions that are recorded, and can be changed by rules; a name may occur twice. */
uint32_t ferrule_fake_function_count(void);
const char *ferrule_fake_function(uint32_t index);

uint32_t ferrule_fake_call_count(void);
/** Copy a call, because the record moves as it grows. */
void ferrule_fake_call(uint32_t index, struct ferrule_fake_call *call);
void ferrule_fake_forget_calls(void);
/** Add a call that is not of a fake to the record; the caller owns `name`. */
void ferrule_fake_note(const char *name, const void *object, int64_t result);

void ferrule_fake_add_rule(const struct ferrule_fake_rule *rule);
void ferrule_fake_forget_rules(void);

/** Number of misuses: calls that the real functions forbid. */
uint32_t ferrule_fake_misuse_count(void);
const char *ferrule_fake_misuse(uint32_t index);
void ferrule_fake_forget_misuses(void);

/** Number of things that the code under test still holds, such as open devices. */
uint32_t ferrule_fake_left_count(void);
/** Return a sentence on one of them. */
const char *ferrule_fake_left(uint32_t index);

uint64_t ferrule_fake_now_us(void);
/** Advance the time, and run the events that become due. */
void ferrule_fake_advance(uint64_t us);
/** Call the hook in an interrupt, `after_us` microseconds from now. */
void ferrule_fake_schedule(uint64_t after_us, uint32_t number);

/** Set how long a thread may wait, in real time, for others that are running. */
void ferrule_fake_set_patience(uint32_t ms);

/** Let the calling host thread act as thread `thread` from now on; 0: as itself. */
void ferrule_fake_become(uint32_t thread);
/** Set the priority of a thread; larger numbers are more urgent, and all threads begin with 0. */
void ferrule_fake_set_priority(uint32_t thread, int32_t priority);
/** Start the kernel; 0: it does not run yet. It then refuses what the real one refuses. */
void ferrule_fake_start_kernel(uint32_t starts);
/** Announce threads that are about to start: time waits for them. */
void ferrule_fake_expect(uint32_t threads);
void ferrule_fake_thread_begins(uint32_t thread);
void ferrule_fake_thread_ends(void);
/** Mark the calling thread as waiting outside the fakes; 0: no longer. */
void ferrule_fake_idle(uint32_t idle);

void ferrule_fake_enter_interrupt(void);
void ferrule_fake_leave_interrupt(void);

/** Deliver bytes to a serial port. */
void ferrule_fake_receive(uint32_t port, const uint8_t *data, uint32_t bytes);
/** Take the bytes sent since the last call, and return their number. */
uint32_t ferrule_fake_sent(uint32_t port, uint8_t *data, uint32_t bytes);
/** Call the hook whenever bytes are sent; 0: no longer. */
void ferrule_fake_on_sent(uint32_t port, uint32_t number);

/** The calls of the device API that change what a device may do. */
enum ferrule_fake_device_call {
    FERRULE_FAKE_ACTIVATES,
    FERRULE_FAKE_DEACTIVATES,
    FERRULE_FAKE_RECOVERS,
    FERRULE_FAKE_OPENS,
    FERRULE_FAKE_CLOSES,
    FERRULE_FAKE_ABORTS,
    FERRULE_FAKE_SUBMITS,
    FERRULE_FAKE_WAITS,
    FERRULE_FAKE_FINISHES,
};

/** The begin or the end of such a call, and the handle's state then. */
struct ferrule_fake_device {
    uintptr_t handle;
    uint32_t call; /* enum ferrule_fake_device_call */
    uint32_t ended;
    int32_t status;   /* valid if it has ended */
    uint32_t submits; /* not 0: its driver begins commands */
    uint32_t depth;   /* of its driver */
    uint32_t in_flight;
    uint32_t is_open;
    uint32_t is_lost;
};

/** Set the function that is told of these calls. */
void ferrule_fake_use_devices(void (*told)(const struct ferrule_fake_device *device));

/** Write the counters of a coverage build; return 0 if this is not one. */
uint32_t ferrule_fake_dump_coverage(void);

#endif /* FERRULE_FAKE_H */
