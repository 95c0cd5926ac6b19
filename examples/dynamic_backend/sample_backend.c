/* SPDX-License-Identifier: Apache-2.0 */
/* Ferrule_Sample_backend.so: ADD, RELU and FULLY_CONNECTED of int8 and float32. */
#include <stdlib.h>

#include "sample_handles.h"
#include "sample_layers.h"

static int32_t supports(const struct ferrule_backend *backend, const struct ferrule_layer *layer,
                        char *reason, size_t reason_bytes)
{
    (void)backend;
    return sample_supports(layer, reason, reason_bytes);
}

static const struct ferrule_option *list_capabilities(const struct ferrule_backend *backend,
                                                      uint32_t *count)
{
    static const struct ferrule_option capabilities[] = {
        {.name = "AsyncExecution", .kind = FERRULE_OPTION_BOOL, .integer = 0},
        {.name = "SampleLayers", .kind = FERRULE_OPTION_INT, .integer = 3},
        {.name = "RoundingRules", .kind = FERRULE_OPTION_TEXT, .text = "tflm single onnx"},
    };

    (void)backend;
    *count = sizeof(capabilities) / sizeof(capabilities[0]);
    return capabilities;
}

static int32_t create_workload(const struct ferrule_backend *backend,
                               const struct ferrule_workload_info *info, void **workload,
                               char *reason, size_t reason_bytes)
{
    struct sample_workload *made = NULL;
    int32_t status = sample_supports(info->layer, reason, reason_bytes);

    (void)backend;
    if (status != FERRULE_OK) {
        return status;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL || !sample_prepare(info->layer, made)) {
        free(made);
        return FERRULE_ERR_MEMORY;
    }
    *workload = made;
    return FERRULE_OK;
}

static int32_t execute(void *workload, const struct ferrule_tensor *const *inputs,
                       const struct ferrule_tensor *const *outputs, void **event, char *reason,
                       size_t reason_bytes)
{
    const struct sample_workload *made = workload;
    int32_t status = sample_access(outputs[0], true);

    (void)event;
    for (uint32_t i = 0; i < made->inputs && status == FERRULE_OK; ++i) {
        status = sample_access(inputs[i], true);
    }
    if (status != FERRULE_OK) {
        return refuse(reason, reason_bytes, status,
                      "a dma-buf refuses the access of the processor");
    }
    made->run(made, inputs, outputs);
    for (uint32_t i = 0; i < made->inputs; ++i) {
        (void)sample_access(inputs[i], false); /* what was read is not changed */
    }
    return sample_access(outputs[0], false);
}

static void destroy_workload(void *workload)
{
    struct sample_workload *made = workload;

    free(made->factors);
    free(made);
}

static const struct ferrule_layer_support layer_support = {
    .size_bytes = sizeof(layer_support),
    .supports = supports,
};

static const struct ferrule_capabilities capabilities = {
    .size_bytes = sizeof(capabilities),
    .list = list_capabilities,
};

static const struct ferrule_workloads workloads = {
    .size_bytes = sizeof(workloads),
    .create = create_workload,
    .execute = execute,
    .destroy = destroy_workload,
};

static const struct ferrule_backend backend = {
    .size_bytes = sizeof(backend),
    .api_major = FERRULE_BACKEND_API_MAJOR,
    .api_minor = FERRULE_BACKEND_API_MINOR,
    .layer_support = &layer_support,
    .capabilities = &capabilities,
    .workloads = &workloads,
    .handles = &sample_handles,
};

const char *GetBackendId(void)
{
    return "Sample";
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
