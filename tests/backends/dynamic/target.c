/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that computes nothing, and reports the target of each call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ferrule/backend.h"

static int64_t bound(const struct ferrule_target *target, const char *name)
{
    for (uint32_t i = 0; i < target->binding_count; i++) {
        if (strcmp(target->binding[i].name, name) == 0) {
            return target->binding[i].integer;
        }
    }
    return -1;
}

static void describe(const struct ferrule_target *target, char *text, size_t bytes)
{
    int used = snprintf(text, bytes, "face=%d device=%s macs=%lld core=%s %d%d%d size=%d",
                        (int)target->face, target->device, (long long)bound(target, "macs"),
                        target->core == NULL ? "none" : target->core, target->fpu, target->dsp,
                        target->mve, target->size_bytes == sizeof(*target));

    for (uint32_t i = 0; i < target->region_count; i++) {
        used += snprintf(text + used, bytes - (size_t)used, " region=%s", target->regions[i]);
    }
    for (uint32_t i = 0; i < target->memory_count; i++) {
        const struct ferrule_core_memory *memory = &target->memories[i];

        used +=
            snprintf(text + used, bytes - (size_t)used, " %s=%llx+%llx,%d%d,%u", memory->name,
                     (unsigned long long)memory->address, (unsigned long long)memory->size_bytes,
                     memory->writable, memory->cacheable, memory->line_bytes);
    }
    for (uint32_t i = 0; i < target->option_count; i++) {
        used += snprintf(text + used, bytes - (size_t)used, " %s=%lld", target->options[i].name,
                         (long long)target->options[i].integer);
    }
}

static int32_t supports(const struct ferrule_backend *backend, const struct ferrule_layer *layer,
                        char *reason, size_t reason_bytes)
{
    (void)backend;
    (void)layer;
    (void)snprintf(reason, reason_bytes, "asked without a target");
    return FERRULE_ERR_UNSUPPORTED;
}

/* An array of multipliers supports a layer whose number of elements is a multiple of its size. */
static int32_t supports_on(const struct ferrule_backend *backend,
                           const struct ferrule_target *target, const struct ferrule_layer *layer,
                           char *reason, size_t reason_bytes)
{
    const int64_t macs = bound(target, "macs");

    (void)backend;
    if (macs > 0 && layer->outputs[0]->size_bytes % (size_t)macs == 0) {
        return FERRULE_OK;
    }
    describe(target, reason, reason_bytes);
    return FERRULE_ERR_UNSUPPORTED;
}

static int32_t optimize(const struct ferrule_backend *backend,
                        const struct ferrule_subgraph *subgraph,
                        const struct ferrule_option *options, uint32_t option_count,
                        const struct ferrule_optimizer_answers *answers, char *reason,
                        size_t reason_bytes)
{
    (void)backend;
    (void)subgraph;
    (void)options;
    (void)option_count;
    (void)answers;
    (void)snprintf(reason, reason_bytes, "asked without a target");
    return FERRULE_ERR_FAILED;
}

/* Compile each layer for the device to which it is assigned. */
static int32_t optimize_on(const struct ferrule_backend *backend,
                           const struct ferrule_target *target,
                           const struct ferrule_subgraph *subgraph,
                           const struct ferrule_optimizer_answers *answers, char *reason,
                           size_t reason_bytes)
{
    char label[512];

    (void)backend;
    (void)reason;
    (void)reason_bytes;
    describe(target, label, sizeof(label));
    for (uint32_t i = 0; i < subgraph->layer_count; i++) {
        const int32_t status =
            answers->pre_compile(answers->host, &i, 1, label, 0, label, strlen(label));

        if (status != FERRULE_OK) {
            return status;
        }
    }
    return FERRULE_OK;
}

static int32_t create(const struct ferrule_backend *backend,
                      const struct ferrule_workload_info *info, void **workload, char *reason,
                      size_t reason_bytes)
{
    char *text = malloc(512);

    (void)backend;
    (void)reason;
    (void)reason_bytes;
    if (text == NULL) {
        return FERRULE_ERR_MEMORY;
    }
    describe(info->target, text, 512);
    *workload = text;
    return FERRULE_OK;
}

/* Fail the run with a message that names the workload's target. */
static int32_t execute(void *workload, const struct ferrule_tensor *const *inputs,
                       const struct ferrule_tensor *const *outputs, void **event, char *reason,
                       size_t reason_bytes)
{
    (void)inputs;
    (void)outputs;
    (void)event;
    (void)snprintf(reason, reason_bytes, "made for %s", (const char *)workload);
    return FERRULE_ERR_FAILED;
}

static const struct ferrule_layer_support support_table = {
    .size_bytes = sizeof(support_table),
    .supports = supports,
    .supports_on = supports_on,
};
static const struct ferrule_optimizer optimizer_table = {
    .size_bytes = sizeof(optimizer_table),
    .optimize = optimize,
    .optimize_on = optimize_on,
};
static const struct ferrule_workloads workloads_table = {
    .size_bytes = sizeof(workloads_table),
    .create = create,
    .execute = execute,
    .destroy = free,
};
static const struct ferrule_backend backend = {
    .size_bytes = sizeof(backend),
    .api_major = FERRULE_BACKEND_API_MAJOR,
    .api_minor = FERRULE_BACKEND_API_MINOR,
    .layer_support = &support_table,
    .optimizer = &optimizer_table,
    .workloads = &workloads_table,
};

const char *GetBackendId(void)
{
    return "Target";
}

void GetVersion(uint32_t *major, uint32_t *minor)
{
    *major = FERRULE_BACKEND_API_MAJOR;
    *minor = FERRULE_BACKEND_API_MINOR;
}

const struct ferrule_backend *BackendFactory(void)
{
    return &backend;
}
