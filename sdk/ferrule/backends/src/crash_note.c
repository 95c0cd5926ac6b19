/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Names the backend whose code ends the process: by a signal of a fault, or by exit().
 *
 * Each thread notes what it is about to call. A handler of the fatal signals writes the note to
 * standard error, and then hands the signal to the handler that was there before, such as Python's
 * faulthandler. Both only use functions that are safe in a signal handler.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define SLOTS           64u
#define NOTE_BYTES      512u
#define STACK_BYTES     65536u
#define EXIT_OF_A_FAULT 2 /* the exit code for an error that the user can fix */

/* atexit() itself is not in the shared C library; a null handle: not at the end of this library. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

struct slot {
    _Atomic uintptr_t thread; /* 0: free */
    char text[NOTE_BYTES];
};

static const struct {
    int number;
    const char *name;
} fatal[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"},
    {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},
};
#define SIGNALS (sizeof(fatal) / sizeof(fatal[0]))

/** The handlers that run after ours: one installed on top of ours, then the one before it. */
struct others {
    struct sigaction later;
    struct sigaction before;
    atomic_size_t next; /* index of the handler that gets the signal next */
};

static struct slot slots[SLOTS];
static struct others others[SIGNALS];
static unsigned char stack[STACK_BYTES];
static pid_t process;
static bool installed;

static uintptr_t this_thread(void)
{
    return (uintptr_t)pthread_self();
}

static struct slot *slot_of(uintptr_t thread)
{
    for (size_t i = 0; i < SLOTS; ++i) {
        if (atomic_load(&slots[i].thread) == thread) {
            return &slots[i];
        }
    }
    return NULL;
}

static void put(const char *text)
{
    size_t left = strnlen(text, NOTE_BYTES);

    while (left > 0) {
        ssize_t done = write(STDERR_FILENO, text, left);
        if (done <= 0) {
            return;
        }
        text += done;
        left -= (size_t)done;
    }
}

/** Write what this thread noted or, in a thread that a backend started, what all threads noted. */
static void tell(const char *how, bool foreign)
{
    const struct slot *own = slot_of(this_thread());

    for (size_t i = 0; i < SLOTS; ++i) {
        if (atomic_load(&slots[i].thread) != 0 && (own == NULL || own == &slots[i])) {
            put("\nferrule: the process ends by ");
            put(how);
            put(foreign ? ", which another process sent," : "");
            put(own == NULL ? " in a thread of its own, during " : " in ");
            put(slots[i].text);
            put("\n");
        }
    }
}

/** Tell once, and let the next handler have the signal; it may put ours back, as LLVM's does. */
static void hand_on(size_t index, bool foreign)
{
    static const struct sigaction plain; /* SIG_DFL */
    const struct sigaction *const order[] = {&others[index].later, &others[index].before, &plain};
    size_t next = atomic_load(&others[index].next);

    if (next == 0) {
        tell(fatal[index].name, foreign);
    }
    while (next < 2 && order[next]->sa_sigaction == NULL) {
        ++next;
    }
    atomic_store(&others[index].next, next < 2 ? next + 1 : 2);
    (void)sigaction(fatal[index].number, order[next], NULL); /* no remedy */
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (size_t i = 0; i < SIGNALS; ++i) {
        if (fatal[i].number == number) {
            hand_on(i, info->si_code <= 0 && info->si_pid != getpid());
        }
    }
    if (info->si_code <= 0) {
        (void)raise(number); /* sent by abort() or kill(): no instruction will cause it again */
    }
}

static void on_exit_of_process(void *argument)
{
    (void)argument;
    if (getpid() == process && slot_of(this_thread()) != NULL) {
        tell("exit()", false);
        _exit(EXIT_OF_A_FAULT);
    }
}

/** Put our handlers on top of those that other code installed; return 0, or -1 on a refusal. */
static int take_signals(void)
{
    struct sigaction own;
    struct sigaction found;

    memset(&own, 0, sizeof(own));
    own.sa_sigaction = on_fault;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&own.sa_mask); /* cannot fail */
    for (size_t i = 0; i < SIGNALS; ++i) {
        if (sigaction(fatal[i].number, NULL, &found) != 0) {
            return -1;
        }
        if (found.sa_sigaction == on_fault) {
            continue;
        }
        if (sigaction(fatal[i].number, &own, NULL) != 0) {
            return -1;
        }
        *(installed ? &others[i].later : &others[i].before) = found;
    }
    installed = true;
    return 0;
}

/** Install the handlers; return 0, or -1 if the system refuses one. */
__attribute__((visibility("default"))) int ferrule_crash_note_install(void)
{
    stack_t old;

    process = getpid();
    if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE) != 0) {
        const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
        (void)sigaltstack(&own, NULL); /* without it, only an overflow of the stack stays unnamed */
    }
    if (take_signals() != 0) {
        return -1;
    }
    return __cxa_atexit(on_exit_of_process, NULL, NULL) == 0 ? 0 : -1;
}

/** Note what this thread calls from now on; an empty text: nothing that is worth a note. */
__attribute__((visibility("default"))) void ferrule_crash_note(const char *text)
{
    const uintptr_t thread = this_thread();
    struct slot *own = slot_of(thread);
    const bool outermost = own == NULL;

    if (text[0] == '\0') {
        if (own != NULL) {
            atomic_store(&own->thread, 0);
        }
        return;
    }
    for (size_t i = 0; own == NULL && i < SLOTS; ++i) {
        uintptr_t none = 0;
        if (atomic_compare_exchange_strong(&slots[i].thread, &none, thread)) {
            own = &slots[i];
        }
    }
    if (own != NULL) { /* otherwise, more threads call backends than there are slots */
        size_t length = strnlen(text, NOTE_BYTES - 1);
        memcpy(own->text, text, length);
        own->text[length] = '\0';
    }
    if (outermost) {
        (void)take_signals(); /* a refusal leaves the signals to the other handlers */
    }
}
