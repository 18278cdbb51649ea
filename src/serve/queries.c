/* Queries about memory. For an address in an arena, the answer is about its block, not about the
 * chunk behind it. If both would have the same answer, the driver answers. Memory that the program
 * created as device memory counts as device memory, even if it is on the host. */
#include "device/device.h"
#include "device/one_memory.h"
#include "device/spill.h"
#include "program/mappings.h"
#include "program/stream.h"
#include "serve/account.h"
#include "serve/handlers.h"
#include "serve/imports.h"

/* Returns the device whose pool contains an address, and the block there; NULL if no pool contains
 * it. ret_block->bytes is 0 if the address is free. */
static struct spw_device *find_block(CUdeviceptr address, struct spw_block *ret_block)
{
    struct spw_pool *pool;
    struct spw_device *device = spw_device_owner(address, &pool);

    if (device != NULL && !spw_pool_find(pool, address, ret_block)) {
        ret_block->bytes = 0;
    }
    return device;
}

/* ---- how much is left ---- */

/* Returns the bytes of the limit that the program holds, including uncounted blocks and the
 * driver's allocations. The pool also counts charged bytes as live, so they are subtracted once. */
static uint64_t held(const struct spw_device *device, const struct spw_pool_usage *usage)
{
    return usage->live + usage->uncounted + spw_counter_get(&device->counters->passed_bytes) -
           spw_counter_get(&device->counters->charged_bytes);
}

/* Reported as free on a full device while the host has room. */
enum { LEAST_FREE = 2 << 20 };

/* Answers for a memory that device and host share. The driver reports what nothing uses (MemFree),
 * although caches of files can make room, or fails. */
static CUresult ask_one_memory(const struct spw_device *device, CUresult result, size_t *free,
                               size_t *total)
{
    uint64_t room = spw_device_one_memory_room(device);

    if (room == UINT64_MAX) {
        return result;
    }
    *free = room;
    *total = device->one_memory.total_bytes;
    return CUDA_SUCCESS;
}

/* Returns true if cuMemGetInfo succeeded, or if its error only means that there is no figure. */
static bool is_about_memory(CUresult result)
{
    return result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY ||
           result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_UNKNOWN;
}

CUresult spw_serve_cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CUresult result = spw_process_driver()->cuMemGetInfo_v2(free, total);
    const struct spw_stream_info *here =
        is_about_memory(result) ? spw_program_stream_current() : NULL;
    struct spw_pool_usage usage;
    struct spw_device *device;
    struct spw_pool *pool;
    uint64_t used, on_device, left, fits;

    spw_serve_account_given_up();
    if (here == NULL || free == NULL || total == NULL) {
        return result;
    }
    device = spw_device_at(here->ordinal);
    pool = spw_device_pool(device);
    result = ask_one_memory(device, result, free, total);
    if (pool == NULL || result != CUDA_SUCCESS) {
        return result;
    }
    spw_pool_usage(pool, &usage);
    used = held(device, &usage);
    on_device = used - usage.placed; /* placed blocks take no room on the device */
    left = on_device < usage.limit ? usage.limit - on_device : 0;
    fits = *free + usage.spare;
    *free = left < fits ? left : fits;
    /* PyTorch halves its request until it fits. It treats the refusal of 0 bytes as an error. */
    if (*free < LEAST_FREE && spw_device_has_room(device)) {
        *free = LEAST_FREE;
    }
    /* Programs rely on free + used <= total. */
    *total = used + *free > usage.limit ? used + *free : usage.limit;
    atomic_store_explicit(&device->reported_free, *free, memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* ---- attributes of an address ---- */

CUresult spw_serve_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct spw_block block;
    CUdeviceptr base;
    size_t bytes;

    if (spw_serve_imports_find(dptr, &base, &bytes)) {
        if (pbase != NULL) {
            *pbase = base;
        }
        if (psize != NULL) {
            *psize = bytes;
        }
        return CUDA_SUCCESS;
    }
    if (find_block(dptr, &block) == NULL) {
        return spw_process_driver()->cuMemGetAddressRange_v2(pbase, psize, dptr);
    }
    if (block.bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pbase != NULL) {
        *pbase = block.address;
    }
    if (psize != NULL) {
        *psize = block.bytes;
    }
    return CUDA_SUCCESS;
}

/* Returns an id that differs from those of other devices' blocks, and from those of the driver's
 * allocations. */
static unsigned long long buffer_id(const struct spw_device *device, const struct spw_block *block)
{
    return (unsigned long long)(device->ordinal + 1) << 48 | block->id;
}

/* Returns true if the driver makes memory that can be exported, so that blocks can be shared
 * (ipc.c). */
static bool can_share(const struct spw_device *device)
{
    struct spw_driver *driver = spw_process_driver();
    int supported = 0;

    return SPW_DRIVER_CALL(driver, device->ordinal, cuDeviceGetAttribute, &supported,
                           CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                           device->handle) == CUDA_SUCCESS &&
           supported != 0;
}

/* Writes an attribute of `address` that differs between a block and its chunks. Returns false for
 * any other attribute. */
static bool answer(struct spw_device *device, const struct spw_block *block, CUdeviceptr address,
                   CUpointer_attribute attribute, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: /* the driver has 0 for a lazy block */
        *(CUdeviceptr *)data = address;
        return true;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = block->context;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = CU_MEMORYTYPE_DEVICE;
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = buffer_id(device, block);
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = device->ordinal;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = block->address;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = block->bytes;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = block->ordered ? spw_device_default_pool(device) : NULL;
        return true;
    default:
        return false;
    }
}

/* Corrects the values that the driver has written for the chunk of a block. cuda.h does not specify
 * the width of the values. Only their lowest byte is therefore changed; it contains every
 * difference. */
static void correct(const struct spw_device *device, CUpointer_attribute attribute, void *data)
{
    if (attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) {
        *(unsigned char *)data = can_share(device);
    } else if (attribute == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES) {
        /* The chunk of a shared block has a handle type, but the block itself has no handle. */
        *(unsigned char *)data = 0;
    } else if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
        *(unsigned char *)data = 1; /* a lazy block will be mapped before it is used */
    }
}

/* Like `answer`, for memory of cuMemCreate that is on the host instead of on device `ordinal`. */
static bool answer_spilled(int ordinal, CUpointer_attribute attribute, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = CU_MEMORYTYPE_DEVICE;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = ordinal;
        return true;
    default:
        return false;
    }
}

/* The host has no pointer to device memory, whichever tier it is on. */
static bool has_none(CUpointer_attribute attribute)
{
    return attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER;
}

CUresult spw_serve_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct spw_block block;
    struct spw_device *device = find_block(ptr, &block);
    int ordinal = device == NULL ? spw_program_mappings_spilled_from(ptr) : -1;
    CUresult result;

    if (device != NULL && block.bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((device != NULL || ordinal >= 0) && has_none(attribute)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device != NULL && data != NULL && answer(device, &block, ptr, attribute, data)) {
        return CUDA_SUCCESS;
    }
    if (ordinal >= 0 && data != NULL && answer_spilled(ordinal, attribute, data)) {
        return CUDA_SUCCESS;
    }
    result = spw_process_driver()->cuPointerGetAttribute(data, attribute, ptr);
    if (result == CUDA_ERROR_INVALID_VALUE && device != NULL && data != NULL) {
        /* The driver does not know a block without memory. This call writes the default value. */
        result = spw_process_driver()->cuPointerGetAttributes(1, &attribute, &data, ptr);
    }
    if (result == CUDA_SUCCESS && device != NULL) {
        correct(device, attribute, data);
    }
    return result;
}

CUresult spw_serve_cuPointerGetAttributes(unsigned int numAttributes,
                                          CUpointer_attribute *attributes, void **data,
                                          CUdeviceptr ptr)
{
    struct spw_block block;
    struct spw_device *device = find_block(ptr, &block);
    int ordinal = device == NULL ? spw_program_mappings_spilled_from(ptr) : -1;
    CUresult result;

    if (device != NULL && block.bytes == 0) {
        /* CUDA does not know free addresses. Queries the driver for an address on this stack, which
         * the driver does not know, so that it writes values of the right width. */
        ptr = (CUdeviceptr)(uintptr_t)&block;
        device = NULL;
    }
    result = spw_process_driver()->cuPointerGetAttributes(numAttributes, attributes, data, ptr);
    if (result != CUDA_SUCCESS || (device == NULL && ordinal < 0)) {
        return result;
    }
    for (unsigned int i = 0; i < numAttributes; i++) {
        if (has_none(attributes[i])) {
            *(void **)data[i] = NULL;
        } else if (device != NULL) {
            if (!answer(device, &block, ptr, attributes[i], data[i])) {
                correct(device, attributes[i], data[i]);
            }
        } else {
            (void)answer_spilled(ordinal, attributes[i], data[i]);
        }
    }
    return CUDA_SUCCESS;
}

/* ---- handles ---- */

CUresult spw_serve_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                                 CUmemRangeHandleType handleType,
                                                 unsigned long long flags)
{
    struct spw_block block;

    if (find_block(dptr, &block) != NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return spw_process_driver()->cuMemGetHandleForAddressRange(handle, dptr, size, handleType,
                                                               flags);
}
