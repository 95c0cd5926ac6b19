/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend with every table, which logs each call. It runs RELU of float32.
 *
 * OWN_HANDLES: tensors live in the backend's memory. ASYNC: workloads run in threads. OWN_MEMORY:
 * the backend manages memory. BREAK_EXECUTE, BREAK_EVENT: the call that fails. AT_EXECUTE: a
 * statement that runs there. BY_REF: handles import by reference (version 1.2). NO_MAP, ONLY_UNMAP:
 * handles lack map and unmap, or map. MINOR: the minor version; 1 makes the factory's table
 * smaller.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ferrule/backend.h"

#ifndef MINOR
#define MINOR FERRULE_BACKEND_API_MINOR
#endif

/* ---- data that tests read */

char full_log[65536];
const void *full_input;
const void *full_output;
const void *full_constant;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *word)
{
    pthread_mutex_lock(&lock);
    size_t used = strlen(full_log);
    snprintf(full_log + used, sizeof(full_log) - used, "%s%s", used ? " " : "", word);
    pthread_mutex_unlock(&lock);
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int32_t refuse(char *reason, size_t reason_bytes, int32_t status, const char *text)
{
    snprintf(reason, reason_bytes, "%s", text);
    return status;
}

static const struct ferrule_option *find(const struct ferrule_option *options, uint32_t count,
                                         const char *name)
{
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(options[i].name, name) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

/* ---- layer support and capabilities */

static int32_t supports(const struct ferrule_backend *backend, const struct ferrule_layer *layer,
                        char *reason, size_t reason_bytes)
{
    (void)backend;
    if (layer->type == FERRULE_LAYER_PRE_COMPILED) {
        return FERRULE_OK;
    }
    if (layer->type != FERRULE_LAYER_RELU) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED, "it runs RELU only");
    }
    if (layer->outputs[0]->type != FERRULE_TYPE_FLOAT32) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED, "it runs float32 only");
    }
    return FERRULE_OK;
}

static const struct ferrule_option *list(const struct ferrule_backend *backend, uint32_t *count)
{
    static const struct ferrule_option options[] = {
#ifdef ASYNC
        {"AsyncExecution", FERRULE_OPTION_BOOL, 1, 0, NULL},
#else
        {"AsyncExecution", FERRULE_OPTION_BOOL, 0, 0, NULL},
#endif
        {"Cores", FERRULE_OPTION_INT, -3, 0, NULL},
        {"Clock", FERRULE_OPTION_FLOAT, 0, 1.5, NULL},
        {"Maker", FERRULE_OPTION_TEXT, 0, 0, "tests"},
    };

    (void)backend;
    *count = 4;
    return options;
}

/* ---- optimizer */

static int32_t optimize(const struct ferrule_backend *backend,
                        const struct ferrule_subgraph *subgraph,
                        const struct ferrule_option *options, uint32_t option_count,
                        const struct ferrule_optimizer_answers *answers, char *reason,
                        size_t reason_bytes)
{
    uint32_t compiled[64];
    uint32_t count = 0;

    (void)backend;
    if (find(options, option_count, "break") != NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_FAILED, "it was asked to break");
    }
    for (uint32_t i = 0; i < subgraph->layer_count; ++i) {
        const char *name = subgraph->layers[i]->name;

        if (i > 0 && subgraph->layers[i]->inputs[0] == subgraph->layers[i - 1]->outputs[0]) {
            note("chained");
        }
        if (strstr(name, "fail") != NULL) {
            answers->fail(answers->host, i, "its name says so");
        } else if (strstr(name, "erase") != NULL) {
            answers->erase(answers->host, i);
        } else if (strstr(name, "compile") != NULL && count < 64) {
            compiled[count++] = i;
        }
    }
    if (find(options, option_count, "twice") != NULL) {
        answers->fail(answers->host, 0, "once");
        if (answers->fail(answers->host, 0, "twice") != FERRULE_ERR_ARGUMENT) {
            note("not-refused");
        }
    }
    if (find(options, option_count, "beyond") != NULL) {
        answers->erase(answers->host, subgraph->layer_count);
    }
    if (count > 0) {
        answers->pre_compile(answers->host, compiled, count, "a few", 12, "blob", 4);
    }
    return FERRULE_OK;
}

/* ---- memory */

struct memory {
    const struct ferrule_allocator *allocator;
    struct ferrule_allocator copy;
    void *block;
};

static int32_t create_memory(const struct ferrule_backend *backend,
                             const struct ferrule_allocator *allocator, void **memory, char *reason,
                             size_t reason_bytes)
{
    struct memory *made = calloc(1, sizeof(*made));

    (void)backend;
    (void)reason;
    (void)reason_bytes;
    if (allocator != NULL) {
        made->copy = *allocator;
        made->allocator = &made->copy;
    }
    *memory = made;
    note("memory");
    return FERRULE_OK;
}

static int32_t acquire(void *memory, char *reason, size_t reason_bytes)
{
    struct memory *made = memory;

    note("acquire");
    if (made->allocator == NULL || made->block != NULL) {
        return FERRULE_OK;
    }
    made->block = made->allocator->allocate(made->allocator->host, 1024, 256);
    if (made->block == NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_MEMORY, "the allocator has nothing left");
    }
    memset(made->block, 0x5A, 1024);
    return FERRULE_OK;
}

static void release_memory(void *memory)
{
    struct memory *made = memory;

    note("release");
    if (made->block != NULL) {
        made->allocator->release(made->allocator->host, made->block);
        made->block = NULL;
    }
}

static void destroy_memory(void *memory)
{
    note("~memory");
    free(memory);
}

static int32_t accept_allocator(const struct ferrule_backend *backend,
                                const struct ferrule_allocator *allocator, char *reason,
                                size_t reason_bytes)
{
    (void)backend;
    if (allocator->source != FERRULE_MEMORY_MALLOC) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED, "plain memory only");
    }
    return FERRULE_OK;
}

#include "full_handles.h" /* uses the functions above */

/* ---- workloads and events */

struct workload {
    size_t count;
    char name[64];
    char compiled[8];
    const char *device;
};

struct job {
    const struct workload *workload;
    const float *input;
    float *output;
    pthread_t thread;
    uint64_t number;
    bool joined;
    bool over;
};

/* Jobs run one after the other in their starting order. */
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static uint64_t turn;
__attribute__((unused)) static uint64_t next_number;

struct record {
    char name[64];
    int64_t start;
    int64_t duration;
};

static struct record records[64];
static uint32_t record_count;
static bool recording;

static int32_t create_workload(const struct ferrule_backend *backend,
                               const struct ferrule_workload_info *info, void **workload,
                               char *reason, size_t reason_bytes)
{
    const struct ferrule_layer *layer = info->layer;
    const struct ferrule_option *option = find(info->options, info->option_count, "refuse");
    struct workload *made = NULL;

    (void)backend;
    if (option != NULL && option->integer == 1) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED, "an option refuses it");
    }
    if (option != NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_MEMORY, "an option wants no memory");
    }
    made = calloc(1, sizeof(*made));
    made->count = layer->outputs[0]->size_bytes / sizeof(float);
    snprintf(made->name, sizeof(made->name), "%s", layer->name);
    made->device = info->device;
    if (layer->type == FERRULE_LAYER_PRE_COMPILED) {
        const struct ferrule_pre_compiled *compiled = layer->descriptor;

        memcpy(made->compiled, compiled->object, compiled->object_bytes);
        note(made->compiled);
    }
    full_constant = layer->inputs[0]->data;
    note("workload");
    *workload = made;
    return FERRULE_OK;
}

static void run(const struct workload *workload, const float *input, float *output)
{
    int64_t begin = now();

    full_input = input;
    full_output = output;
    for (size_t i = 0; i < workload->count; ++i) {
        output[i] = input[i] > 0.0f ? input[i] : 0.0f;
    }
    pthread_mutex_lock(&lock);
    if (recording && record_count < 64) {
        struct record *record = &records[record_count++];

        snprintf(record->name, sizeof(record->name), "%s", workload->name);
        record->start = begin;
        record->duration = now() - begin;
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((unused)) static void *work(void *argument)
{
    struct job *job = argument;

    pthread_mutex_lock(&lock);
    while (turn != job->number) {
        pthread_cond_wait(&turn_changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    usleep(2000);
    run(job->workload, job->input, job->output);
    pthread_mutex_lock(&lock);
    ++turn;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&lock);
    __atomic_store_n(&job->over, true, __ATOMIC_RELEASE);
    return NULL;
}

static int32_t execute(void *workload, const struct ferrule_tensor *const *inputs,
                       const struct ferrule_tensor *const *outputs, void **event, char *reason,
                       size_t reason_bytes)
{
    void *input = inputs[0]->handle != NULL ? bytes_of(inputs[0]->handle) : inputs[0]->data;
    void *output = outputs[0]->handle != NULL ? bytes_of(outputs[0]->handle) : outputs[0]->data;

#ifdef AT_EXECUTE
    AT_EXECUTE;
#endif
#ifdef BREAK_EXECUTE
    (void)workload;
    (void)input;
    (void)output;
    (void)event;
    return refuse(reason, reason_bytes, FERRULE_ERR_FAILED, "the device is gone");
#elif defined(ASYNC)
    struct job *job = NULL;

    if (event == NULL) {
        run(workload, input, output);
        return FERRULE_OK;
    }
    job = calloc(1, sizeof(*job));
    job->workload = workload;
    job->input = input;
    job->output = output;
    job->number = next_number++;
    if (pthread_create(&job->thread, NULL, work, job) != 0) {
        free(job);
        return refuse(reason, reason_bytes, FERRULE_ERR_FAILED, "no thread could be started");
    }
    *event = job;
#else
    (void)event;
    (void)reason;
    (void)reason_bytes;
    run(workload, input, output);
#endif
    return FERRULE_OK;
}

static void destroy_workload(void *workload)
{
    free(workload);
    note("~workload");
}

static int32_t wait_for(void *event, char *reason, size_t reason_bytes)
{
    struct job *job = event;

    if (!job->joined) {
        pthread_join(job->thread, NULL);
        job->joined = true;
    }
#ifdef BREAK_EVENT
    return refuse(reason, reason_bytes, FERRULE_ERR_FAILED, "it went wrong half-way");
#else
    (void)reason;
    (void)reason_bytes;
    return FERRULE_OK;
#endif
}

static bool done(void *event)
{
    struct job *job = event;

    return __atomic_load_n(&job->over, __ATOMIC_ACQUIRE);
}

static void release_event(void *event)
{
    free(event);
    note("~event");
}

/* ---- contexts and profiling */

static int32_t create_context(const struct ferrule_backend *backend,
                              const struct ferrule_creation_options *options, void **context,
                              char *reason, size_t reason_bytes)
{
    (void)backend;
    if (find(options->options, options->option_count, "unavailable") != NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNAVAILABLE, "its device is not there");
    }
    *context = malloc(1);
    *(char *)*context = find(options->options, options->option_count, "refuse_load") != NULL;
    note("context");
    return FERRULE_OK;
}

static bool before_load(void *context, int64_t network)
{
    (void)network;
    note("before-load");
    return *(char *)context == 0;
}

static bool after_load(void *context, int64_t network)
{
    (void)context;
    (void)network;
    note("after-load");
    return true;
}

static bool before_unload(void *context, int64_t network)
{
    (void)context;
    (void)network;
    note("before-unload");
    return true;
}

static bool after_unload(void *context, int64_t network)
{
    (void)context;
    (void)network;
    note("after-unload");
    return true;
}

static void destroy_context(void *context)
{
    free(context);
    note("~context");
}

static int32_t create_profiling(const struct ferrule_backend *backend,
                                const struct ferrule_creation_options *options, void **profiling,
                                char *reason, size_t reason_bytes)
{
    (void)backend;
    (void)reason;
    (void)reason_bytes;
    note(options->profiling ? "profiling-on" : "profiling-off");
    *profiling = records;
    return FERRULE_OK;
}

static bool enable(void *profiling, bool enabled)
{
    (void)profiling;
    recording = enabled;
    return true;
}

static void take_events(void *profiling, void *host,
                        void (*event)(void *host, const char *name, int64_t start_ns,
                                      int64_t duration_ns))
{
    (void)profiling;
    for (uint32_t i = 0; i < record_count; ++i) {
        event(host, records[i].name, records[i].start, records[i].duration);
    }
    record_count = 0;
}

static void destroy_profiling(void *profiling)
{
    (void)profiling;
    note("~profiling");
}

/* ---- tables */

static const struct ferrule_layer_support support_table = {.size_bytes = sizeof(support_table),
                                                           .supports = supports};
static const struct ferrule_capabilities capability_table = {sizeof(capability_table), list};
static const struct ferrule_optimizer optimizer_table = {.size_bytes = sizeof(optimizer_table),
                                                         .optimize = optimize};
static const struct ferrule_workloads workload_table = {
    sizeof(workload_table),
    create_workload,
    execute,
    destroy_workload,
};
__attribute__((unused)) static const struct ferrule_events event_table = {
    sizeof(event_table),
    wait_for,
    done,
    release_event,
};
__attribute__((unused)) static const struct ferrule_memory memory_table = {
    sizeof(memory_table), create_memory, acquire, release_memory, destroy_memory, accept_allocator,
};
static const struct ferrule_handle_factory *const factories[] = {&factory};
__attribute__((unused)) static const struct ferrule_handles handle_table = {
    sizeof(handle_table),
    factories,
    1,
};
static const struct ferrule_contexts context_table = {
    sizeof(context_table), create_context, before_load,     after_load,
    before_unload,         after_unload,   destroy_context,
};
static const struct ferrule_profiling profiling_table = {
    sizeof(profiling_table), create_profiling, enable, take_events, destroy_profiling,
};
static const struct ferrule_backend full = {
    .size_bytes = sizeof(full),
    .api_major = FERRULE_BACKEND_API_MAJOR,
    .api_minor = MINOR,
    .layer_support = &support_table,
    .capabilities = &capability_table,
    .optimizer = &optimizer_table,
    .workloads = &workload_table,
#ifndef NO_EVENTS
    .events = &event_table,
#endif
#ifdef OWN_MEMORY
    .memory = &memory_table,
#endif
#ifdef OWN_HANDLES
    .handles = &handle_table,
#endif
    .contexts = &context_table,
    .profiling = &profiling_table,
};

const char *GetBackendId(void)
{
    return "Full";
}

void GetVersion(uint32_t *major, uint32_t *minor)
{
    *major = FERRULE_BACKEND_API_MAJOR;
    *minor = MINOR;
}

const struct ferrule_backend *BackendFactory(void)
{
    return &full;
}
