/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#endif

/** Alignment of every element type. */
enum { ALIGNMENT = 16 };
/** A cache line: backends that import what the sample exports may need this alignment. */
enum { EXPORT_ALIGNMENT = 64 };

struct sample_handle {
    size_t size_bytes;
    void *own;      /**< null if the handle has imported memory only */
    void *imported; /**< null if nothing is imported */
    int32_t fd;     /**< of the dma-buf that is imported; -1 if none is */
};

static int32_t create_handle(const struct ferrule_backend *backend, void *memory,
                             const struct ferrule_tensor *tensor, bool managed, void **handle,
                             char *reason, size_t reason_bytes)
{
    struct sample_handle *made = calloc(1, sizeof(*made));

    (void)backend;
    (void)memory;
    if (made != NULL && managed) {
        size_t lines = tensor->size_bytes / EXPORT_ALIGNMENT + 1;

        made->own = aligned_alloc(EXPORT_ALIGNMENT, lines * EXPORT_ALIGNMENT);
    }
    if (made == NULL || (managed && made->own == NULL)) {
        free(made);
        return refuse(reason, reason_bytes, FERRULE_ERR_MEMORY, "no memory for tensor '%s'",
                      tensor->name);
    }
    if (managed) {
        memset(made->own, 0, tensor->size_bytes);
    }
    made->size_bytes = tensor->size_bytes;
    made->fd = -1;
    *handle = made;
    return FERRULE_OK;
}

static void destroy_handle(void *handle)
{
    struct sample_handle *made = handle;

    free(made->own);
    free(made);
}

/** Tells Linux that an access of the processor to an imported dma-buf begins or ends. */
static int32_t synchronise(const struct sample_handle *handle, bool begin)
{
#ifdef __linux__
    struct dma_buf_sync sync = {
        .flags = DMA_BUF_SYNC_RW | (begin ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END),
    };
    int result = 0;

    if (handle->fd < 0) {
        return FERRULE_OK;
    }
    do {
        result = ioctl(handle->fd, DMA_BUF_IOCTL_SYNC, &sync);
    } while (result != 0 && (errno == EINTR || errno == EAGAIN));
    /* ENOTTY: a file in memory, which the host uses where there are no dma-bufs, needs nothing */
    return result == 0 || errno == ENOTTY ? FERRULE_OK : FERRULE_ERR_DEVICE;
#else
    (void)handle;
    (void)begin;
    return FERRULE_OK;
#endif
}

static int32_t map(void *handle, void **data, char *reason, size_t reason_bytes)
{
    const struct sample_handle *made = handle;

    *data = made->imported != NULL ? made->imported : made->own;
    if (*data == NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_MEMORY, "the handle has no memory");
    }
    if (synchronise(made, true) != FERRULE_OK) {
        return refuse(reason, reason_bytes, FERRULE_ERR_DEVICE, "the dma-buf refuses an access");
    }
    return FERRULE_OK;
}

static void unmap(void *handle)
{
    (void)synchronise(handle, false); /* there is no way to report it; the next access is refused */
}

static bool import_ref(void *handle, const struct ferrule_memory_ref *memory, bool try_only)
{
    struct sample_handle *made = handle;
    void *region = NULL;

    if (memory != NULL) {
        /* a dma-buf is imported if it is mapped; it is then memory of the process, too */
        if ((memory->source & FERRULE_MEMORY_MALLOC) == 0 || memory->address == NULL ||
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
        made->fd =
            memory != NULL && (memory->source & FERRULE_MEMORY_DMA_BUF) != 0 ? memory->fd : -1;
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

int32_t sample_access(const struct ferrule_tensor *tensor, bool begin)
{
    return tensor->handle == NULL ? FERRULE_OK : synchronise(tensor->handle, begin);
}
