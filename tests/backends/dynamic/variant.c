/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single source for all good and bad dynamic backends of the tests; macros choose the defect.
 *
 * ID, MAJOR, MINOR: the answers of the entry points. NO_ID, NO_VERSION, NO_FACTORY: an entry point
 * is missing. AT_CONSTRUCTOR, AT_ID, AT_VERSION, AT_FACTORY, AT_DESTRUCTOR: a statement that runs
 * there. Other macros are explained where they are used.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ferrule/backend.h"

#ifndef ID
#define ID "Valid"
#endif
#ifndef MAJOR
#define MAJOR FERRULE_BACKEND_API_MAJOR
#endif
#ifndef MINOR
#define MINOR FERRULE_BACKEND_API_MINOR
#endif
#ifndef TABLE_MAJOR
#define TABLE_MAJOR MAJOR
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(struct ferrule_backend)
#endif
#ifndef SUPPORT_SIZE
#define SUPPORT_SIZE sizeof(struct ferrule_layer_support)
#endif
#ifndef SUPPORTS
#define SUPPORTS supports
#endif
#ifndef SUPPORT_TABLE
#define SUPPORT_TABLE &support
#endif
#ifndef WORKLOADS
#define WORKLOADS NULL
#endif
#ifndef HANDLES
#define HANDLES NULL
#endif
#ifndef AT_SUPPORTS
#define AT_SUPPORTS
#endif
#ifndef AT_LIST
#define AT_LIST
#endif
#ifndef AT_CONTEXT
#define AT_CONTEXT
#endif
#ifndef CAPABILITIES
#define CAPABILITIES NULL
#endif
#ifndef CAPABILITY_COUNT
#define CAPABILITY_COUNT 1
#endif
#ifndef CAPABILITY_NAME
#define CAPABILITY_NAME "Name"
#endif
#ifndef CONTEXTS
#define CONTEXTS NULL
#endif

#define CRASH (*(volatile int *)8 = 1)
#define ABORT abort()
#define HANG                                                                                       \
    for (;;) {                                                                                     \
        pause();                                                                                   \
    }
#define SPIN                                                                                       \
    for (volatile int i = 1; i;) {                                                                 \
    }
__attribute__((unused)) static void *crash(void *unused)
{
    CRASH;
    return unused;
}
#define CRASH_IN_A_THREAD                                                                          \
    do {                                                                                           \
        pthread_t thread;                                                                          \
        pthread_create(&thread, NULL, crash, NULL);                                                \
        pthread_join(thread, NULL);                                                                \
    } while (0)
#define LEAVE      _exit(127)
#define LEAVE_WELL exit(0)
#define SHOUT                                                                                      \
    for (int i = 0; i < 100000; ++i) {                                                             \
        puts("noise");                                                                             \
        fputs("noise\n", stderr);                                                                  \
    }
/* The alarm ends the child even if the host does not, so that no process is left behind. */
#define LEAVE_A_CHILD(note)                                                                        \
    do {                                                                                           \
        int child = fork();                                                                        \
        if (child == 0) {                                                                          \
            alarm(60);                                                                             \
            pause();                                                                               \
            _exit(0);                                                                              \
        }                                                                                          \
        FILE *file = fopen(note, "w");                                                             \
        fprintf(file, "%d", child);                                                                \
        fclose(file);                                                                              \
    } while (0)
#define STRUCK                                                                                     \
    if (fork() == 0) {                                                                             \
        kill(getppid(), SIGABRT);                                                                  \
        _exit(0);                                                                                  \
    }                                                                                              \
    pause()
#define KILL_GROUP kill(0, SIGTERM)

#ifdef UNDEFINED_FUNCTION
extern void no_such_function(void);
#define AT_ID no_such_function()
#endif
#ifdef UNDEFINED_DATA
extern int no_such_data;
int *pointer_to_nowhere = &no_such_data;
#endif

#ifdef AT_CONSTRUCTOR
__attribute__((constructor)) static void construct(void)
{
    AT_CONSTRUCTOR;
}
#endif
#ifdef AT_DESTRUCTOR
__attribute__((destructor)) static void destruct(void)
{
    AT_DESTRUCTOR;
}
#endif

__attribute__((unused)) static int32_t supports(const struct ferrule_backend *backend,
                                                const struct ferrule_layer *layer, char *reason,
                                                size_t reason_bytes)
{
    (void)backend;
    (void)layer;
    AT_SUPPORTS;
    strncpy(reason, "it takes nothing", reason_bytes - 1);
    return FERRULE_ERR_UNSUPPORTED;
}

static const struct ferrule_option *list(const struct ferrule_backend *backend, uint32_t *count)
{
    static const struct ferrule_option options[] = {{.name = CAPABILITY_NAME}};

    (void)backend;
    AT_LIST;
    *count = CAPABILITY_COUNT;
    return options;
}

static int32_t create_context(const struct ferrule_backend *backend,
                              const struct ferrule_creation_options *options, void **context,
                              char *reason, size_t reason_bytes)
{
    (void)backend;
    (void)options;
    (void)context;
    (void)reason;
    (void)reason_bytes;
    AT_CONTEXT;
    return FERRULE_ERR_UNAVAILABLE;
}

static bool notice(void *context, int64_t network)
{
    (void)context;
    (void)network;
    return true;
}

static void destroy(void *context)
{
    (void)context;
    abort(); /* no context was created */
}

__attribute__((unused)) static int not_code = 1;
const struct ferrule_layer_support support = {.size_bytes = SUPPORT_SIZE, .supports = SUPPORTS};
const struct ferrule_workloads no_functions = {.size_bytes = sizeof(no_functions)};
const struct ferrule_workloads short_table = {.size_bytes = 8};
const struct ferrule_handles no_factories = {.size_bytes = sizeof(no_factories)};
const struct ferrule_handle_factory *const null_factories[] = {NULL};
const struct ferrule_handles null_factory = {sizeof(null_factory), null_factories, 1};
const struct ferrule_capabilities capabilities = {sizeof(capabilities), list};
const struct ferrule_contexts contexts = {
    sizeof(contexts), create_context, notice, notice, notice, notice, destroy,
};
const struct ferrule_backend backend = {
    .size_bytes = TABLE_SIZE,
    .api_major = TABLE_MAJOR,
    .api_minor = MINOR,
    .layer_support = SUPPORT_TABLE,
    .workloads = WORKLOADS,
    .handles = HANDLES,
    .capabilities = CAPABILITIES,
    .contexts = CONTEXTS,
};

#ifdef MANGLED
const char *mangled_id(void) __asm__("_Z12GetBackendIdv");
const char *mangled_id(void)
{
    return ID;
}
#elif !defined(NO_ID)
const char *GetBackendId(void)
{
#ifdef AT_ID
    AT_ID;
#endif
    return ID;
}
#endif

#ifndef NO_VERSION
void GetVersion(uint32_t *major, uint32_t *minor)
{
#ifdef AT_VERSION
    AT_VERSION;
#endif
#ifndef SILENT_VERSION
    *major = MAJOR;
    *minor = MINOR;
#else
    (void)major;
    (void)minor;
#endif
}
#endif

#ifndef NO_FACTORY
const struct ferrule_backend *BackendFactory(void)
{
#ifdef AT_FACTORY
    AT_FACTORY;
#endif
#ifdef FACTORY_RESULT
    return (const struct ferrule_backend *)(FACTORY_RESULT);
#else
    return &backend;
#endif
}
#endif
