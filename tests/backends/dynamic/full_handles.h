/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor handles of full.c, which includes this file behind the functions `note` and `refuse`.
 */
#ifndef TESTS_FULL_HANDLES_H
#define TESTS_FULL_HANDLES_H

#include <stdlib.h>
#include <sys/mman.h>

#include "ferrule/backend.h"

struct handle {
    void *own;
    void *imported;
};

static int32_t create_handle(const struct ferrule_backend *backend, void *memory,
                             const struct ferrule_tensor *tensor, bool managed, void **handle,
                             char *reason, size_t reason_bytes)
{
    struct handle *made = calloc(1, sizeof(*made));

    (void)backend;
    (void)memory;
    if (tensor->rank > 4) {
        free(made);
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED, "too many dimensions");
    }
    if (managed) {
        made->own = calloc(1, tensor->size_bytes);
    }
    *handle = made;
    note("handle");
    return FERRULE_OK;
}

static void *bytes_of(void *handle)
{
    struct handle *made = handle;

    return made->imported != NULL ? made->imported : made->own;
}

__attribute__((unused)) static int32_t map(void *handle, void **data, char *reason,
                                           size_t reason_bytes)
{
    *data = bytes_of(handle);
    note("map");
    if (*data == NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_MEMORY, "nothing is imported");
    }
    return FERRULE_OK;
}

__attribute__((unused)) static void unmap(void *handle)
{
    (void)handle;
    note("unmap");
}

static void manage(void *handle)
{
    (void)handle;
    note("manage");
}

static void allocate(void *handle)
{
    (void)handle;
    note("allocate");
}

static bool import_memory(void *handle, void *data, uint32_t source, bool try_only)
{
    struct handle *made = handle;

    if (source != FERRULE_MEMORY_MALLOC || (uintptr_t)data % 16 != 0) {
        return false;
    }
    if (!try_only) {
        note(data != NULL ? "import" : "end-import");
        made->imported = data;
    }
    return true;
}

#ifdef BY_REF
/* Imports by fd what has no address: it maps the block, which stays mapped until the process ends.
 */
static bool import_ref(void *handle, const struct ferrule_memory_ref *memory, bool try_only)
{
    struct handle *made = handle;
    char *block = memory != NULL ? memory->address : NULL;

    if (memory != NULL &&
        (memory->source & (FERRULE_MEMORY_MALLOC | FERRULE_MEMORY_DMA_BUF)) == 0) {
        return false;
    }
    if (memory != NULL &&
        (memory->offset % 16 != 0 || memory->offset + memory->bytes > memory->block_bytes)) {
        return false;
    }
    if (try_only) {
        return true;
    }
    if (memory != NULL && block == NULL) {
        block = mmap(NULL, memory->block_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
    }
    note(memory != NULL ? "import-ref" : "end-import-ref");
    made->imported = memory != NULL ? block + memory->offset : NULL;
    return true;
}

static uint32_t memory_alignment(const struct ferrule_backend *backend, uint32_t source)
{
    (void)backend;
    return source == FERRULE_MEMORY_DMA_BUF ? 4096 : 32;
}

#ifndef REQUIRED
static uint32_t connection_capabilities(const struct ferrule_backend *backend,
                                        const struct ferrule_layer *layer,
                                        const struct ferrule_layer *connected)
{
    (void)backend;
    if (layer == NULL) {
        return 0;
    }
    return connected != NULL && connected->type == FERRULE_LAYER_RELU && connected->input_count == 0
               ? FERRULE_HANDLE_FALLBACK_IMPORT_MEMORY_REQUIRED
               : FERRULE_HANDLE_PADDING_REQUIRED;
}
#endif
#endif

static void destroy_handle(void *handle)
{
    struct handle *made = handle;

    free(made->own);
    free(made);
    note("~handle");
}

static const struct ferrule_handle_factory factory = {
#if MINOR == 1
    .size_bytes = offsetof(struct ferrule_handle_factory, memory_alignment),
#else
    .size_bytes = sizeof(factory),
#endif
    .id = "Tests/Full",
#ifdef BY_REF
    .import_flags = FERRULE_MEMORY_MALLOC | FERRULE_MEMORY_DMA_BUF,
#else
    .import_flags = FERRULE_MEMORY_MALLOC,
#endif
    .export_flags = FERRULE_MEMORY_MALLOC,
#ifdef REQUIRED
    .capabilities = FERRULE_HANDLE_FALLBACK_IMPORT_MEMORY_REQUIRED,
#else
    .capabilities = FERRULE_HANDLE_FALLBACK_IMPORT_DISABLED,
#endif
    .alignment_bytes = 16,
#ifndef NO_MAP
    .supports_map = true,
    .map = map,
    .unmap = unmap,
#elif defined(ONLY_UNMAP)
    .supports_map = true,
    .unmap = unmap,
#endif
    .create = create_handle,
    .manage = manage,
    .allocate = allocate,
    .import_memory = import_memory,
    .destroy = destroy_handle,
#ifdef BY_REF
    .memory_alignment = memory_alignment,
#ifndef REQUIRED
    .connection_capabilities = connection_capabilities,
#endif
    .import_ref = import_ref,
#endif
};

#endif
