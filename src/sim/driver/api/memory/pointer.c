/* cuPointerGetAttribute and similar functions. */
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"
#include "sim/driver/memory/block.h"
#include "sim/driver/memory/mapping.h"
#include "sim/driver/memory/space.h"

/* The objects at an address. An address in a block of device memory is also in a mapping. */
struct place {
    uint64_t address;
    const struct sim_block *block;
    const struct sim_mapping *mapping;
    const struct sim_reservation *reservation; /* made by the application */
};

/* False if the address is free or is not an address of the simulator. */
static bool find_place(uint64_t address, struct place *ret_place)
{
    struct place place = {.address = address};
    const struct sim_reservation *reservation = sim_space_find(address);

    place.block = sim_block_find(address);
    place.mapping = sim_mapping_find(address);
    if (place.block != NULL && place.block->queued != NULL) {
        return false;
    }
    if (reservation != NULL && !reservation->internal) {
        place.reservation = reservation;
    }
    if (place.block == NULL && place.reservation == NULL) {
        return false;
    }
    *ret_place = place;
    return true;
}

static bool is_host(const struct place *place)
{
    if (place->block != NULL) {
        return sim_block_is_host(place->block);
    }
    return place->mapping != NULL && place->mapping->chunk->device == NULL;
}

static bool is_managed(const struct place *place)
{
    return place->block != NULL && place->block->kind == SIM_BLOCK_MANAGED;
}

static bool is_mapped(const struct place *place)
{
    return place->block != NULL || place->mapping != NULL;
}

static int device_of(const struct place *place)
{
    if (place->block != NULL) {
        return place->block->device->ordinal;
    }
    if (place->mapping->chunk->device != NULL) {
        return place->mapping->chunk->device->ordinal;
    }
    return place->mapping->readers != 0 ? __builtin_ctzll(place->mapping->readers) : 0;
}

static CUresult put_int(void *data, unsigned int value)
{
    memcpy(data, &value, sizeof(value));
    return CUDA_SUCCESS;
}

static CUresult put_bool(void *data, bool value)
{
    return put_int(data, value); /* cuda.h has a boolean here; callers pass an int or a bool */
}

static CUresult put_long(void *data, uint64_t value)
{
    memcpy(data, &value, sizeof(value));
    return CUDA_SUCCESS;
}

static CUresult device_pointer(void *data, const struct place *place)
{
    CUcontext ctx;
    CUresult result = sim_ctx_require(&ctx);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (place->block != NULL && sim_block_is_host(place->block)) {
        return put_long(data, place->address);
    }
    return sim_mapping_allows(place->mapping, ctx->device, false) ? put_long(data, place->address)
                                                                  : CUDA_ERROR_INVALID_VALUE;
}

static CUresult host_pointer(void *data, const struct place *place)
{
    bool reachable =
        place->block != NULL ? sim_block_is_host(place->block) : place->mapping->host_prot != 0;

    return reachable ? put_long(data, place->address) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult access_flags(void *data, const struct place *place)
{
    CUcontext ctx;
    CUresult result = sim_ctx_require(&ctx);
    unsigned int flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (place->mapping != NULL && !sim_mapping_allows(place->mapping, ctx->device, true)) {
        flags = sim_mapping_allows(place->mapping, ctx->device, false)
                    ? CU_MEM_ACCESS_FLAGS_PROT_READ
                    : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    return put_int(data, flags);
}

/* cuda.h: the range of the allocation or, for memory in a reservation, of the reservation. */
static const struct sim_range *range_of(const struct place *place)
{
    return place->block != NULL ? &place->block->range : &place->reservation->range;
}

static uint64_t range_size(const struct place *place)
{
    return place->block != NULL ? place->block->size : place->reservation->range.size;
}

/* Attributes of reserved addresses, mapped or not. */
static bool get_of_range(void *data, CUpointer_attribute attribute, const struct place *place)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        put_long(data, range_of(place)->start);
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        put_long(data, range_size(place));
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put_bool(data, is_mapped(place));
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        put_bool(data, is_managed(place));
        return true;
    default:
        return false;
    }
}

static CUresult get_of_memory(void *data, CUpointer_attribute attribute, const struct place *place)
{
    const struct sim_block *block = place->block;
    const struct sim_mapping *mapping = place->mapping;

    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put_long(data, (uintptr_t)(block != NULL ? block->ctx : NULL));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put_int(data, is_host(place) && !is_managed(place) ? CU_MEMORYTYPE_HOST
                                                                  : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return device_pointer(data, place);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return host_pointer(data, place);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return put_bool(data, block != NULL && block->sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return put_long(data, block != NULL ? block->id : mapping->chunk->id);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put_int(data, (unsigned int)device_of(place));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put_bool(data, block != NULL && block->kind == SIM_BLOCK_ALLOC);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return put_long(data, block == NULL ? mapping->chunk->prop.requestedHandleTypes : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return put_bool(data, false);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return access_flags(data, place);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return put_long(data, (uintptr_t)(block != NULL ? block->pool : NULL));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return put_long(data, mapping != NULL ? mapping->range.start : block->range.start);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return put_long(data, mapping != NULL ? mapping->range.size : block->range.size);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return put_long(data, mapping != NULL ? mapping->chunk->id : block->id);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult get(void *data, CUpointer_attribute attribute, const struct place *place)
{
    if (get_of_range(data, attribute, place)) {
        return CUDA_SUCCESS;
    }
    return is_mapped(place) ? get_of_memory(data, attribute, place) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuPointerGetAttribute, SIM_HEALTHY,
        (void *data, CUpointer_attribute attribute, CUdeviceptr ptr))
{
    struct place place;

    if (data == NULL || !find_place(ptr, &place)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return get(data, attribute, &place);
}

/* The "default NULL value" of an attribute; CU_DEVICE_INVALID for a device ordinal. */
static CUresult put_default(void *data, CUpointer_attribute attribute)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put_int(data, (unsigned int)CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return put_int(data, 0);
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return put_long(data, 0);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* cuda.h: an address that CUDA does not know is not an error here. */
SIM_API(cuPointerGetAttributes, SIM_HEALTHY,
        (unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr))
{
    struct place place = {0};
    bool known = find_place(ptr, &place);

    if (numAttributes == 0 || attributes == NULL || data == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned int i = 0; i < numAttributes; i++) {
        if (data[i] == NULL || put_default(data[i], attributes[i]) != CUDA_SUCCESS) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (known) {
            (void)get(data[i], attributes[i], &place); /* on failure the default stays */
        }
    }
    return CUDA_SUCCESS;
}

SIM_API(cuPointerSetAttribute, SIM_HEALTHY,
        (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr))
{
    struct sim_block *block = sim_block_find(ptr);

    if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || block == NULL ||
        block->queued != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    block->sync_memops = *(const unsigned int *)value != 0;
    return CUDA_SUCCESS;
}
