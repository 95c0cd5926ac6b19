/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_handles.h"

#include <stdlib.h>

/** Alignment of every element type. */
enum { ALIGNMENT = 16 };

struct sample_handle {
    size_t size_bytes;
    void *own;      /**< null if the handle has imported memory only */
    void *imported; /**< null if nothing is imported */
};

static int32_t create_handle(const struct ferrule_backend *backend, void *memory,
                             const struct ferrule_tensor *tensor, bool managed, void **handle,
                             char *reason, size_t reason_bytes)
{
    struct sample_handle *made = calloc(1, sizeof(*made));

    (void)backend;
    (void)memory;
    if (made != NULL && managed) {
        made->own = calloc(1, tensor->size_bytes > 0 ? tensor->size_bytes : 1);
    }
    if (made == NULL || (managed && made->own == NULL)) {
        free(made);
        return refuse(reason, reason_bytes, FERRULE_ERR_MEMORY, "no memory for tensor '%s'",
                      tensor->name);
    }
    made->size_bytes = tensor->size_bytes;
    *handle = made;
    return FERRULE_OK;
}

static void destroy_handle(void *handle)
{
    struct sample_handle *made = handle;

    free(made->own);
    free(made);
}

static int32_t map(void *handle, void **data, char *reason, size_t reason_bytes)
{
    const struct sample_handle *made = handle;

    *data = made->imported != NULL ? made->imported : made->own;
    if (*data == NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_MEMORY, "the handle has no memory");
    }
    return FERRULE_OK;
}

static void unmap(void *handle)
{
    (void)handle;
}

static bool import_ref(void *handle, const struct ferrule_memory_ref *memory, bool try_only)
{
    struct sample_handle *made = handle;
    void *region = NULL;

    if (memory != NULL) {
        /* a dma-buf is refused even if it is mapped: accesses to it would have to be synchronised
         */
        if (memory->source != FERRULE_MEMORY_MALLOC || memory->address == NULL ||
            memory->bytes != made->size_bytes) {
            return false;
        }
        region = (char *)memory->address + memory->offset;
        if ((uintptr_t)region % ALIGNMENT != 0) {
            return false;
        }
    }
    if (!try_only) {
        made->imported = region;
    }
    return true;
}

static uint32_t memory_alignment(const struct ferrule_backend *backend, uint32_t source)
{
    (void)backend;
    (void)source;
    return ALIGNMENT;
}

static const struct ferrule_handle_factory factory = {
    .size_bytes = sizeof(factory),
    .id = "Ferrule/Sample",
    .import_flags = FERRULE_MEMORY_MALLOC,
    .export_flags = FERRULE_MEMORY_MALLOC,
    .supports_map = true,
    .create = create_handle,
    .map = map,
    .unmap = unmap,
    .destroy = destroy_handle,
    .memory_alignment = memory_alignment,
    .import_ref = import_ref,
};

static const struct ferrule_handle_factory *const factories[] = {&factory};

const struct ferrule_handles sample_handles = {
    .size_bytes = sizeof(sample_handles),
    .factories = factories,
    .factory_count = 1,
};

void *sample_elements(const struct ferrule_tensor *tensor)
{
    const struct sample_handle *handle = tensor->handle;

    if (handle == NULL) {
        return tensor->data;
    }
    return handle->imported != NULL ? handle->imported : handle->own;
}
