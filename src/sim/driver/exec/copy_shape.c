#include "sim/driver/exec/copy.h"

/* One side of a copy, with the members common to cuda.h's structures. */
struct side {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    size_t pitch;
    size_t height;
    size_t x;
    size_t y;
    size_t z;
};

static CUresult place_from(const struct side *side, struct sim_place *ret_place)
{
    struct sim_place place = {
        .pitch = side->pitch,
        .slice = side->pitch * side->height,
        .may_be_pageable = side->type != CU_MEMORYTYPE_DEVICE,
    };

    switch (side->type) {
    case CU_MEMORYTYPE_HOST:
        place.address = (CUdeviceptr)side->host;
        break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        place.address = side->device;
        break;
    case CU_MEMORYTYPE_ARRAY:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    place.address += side->z * place.slice + side->y * place.pitch + side->x;
    *ret_place = place;
    return CUDA_SUCCESS;
}

static CUresult copy_from(const struct side *dst, const struct side *src, size_t width,
                          size_t height, size_t depth, struct sim_copy *ret_copy)
{
    struct sim_copy copy = {.width = width, .height = height, .depth = depth};
    CUresult result = place_from(dst, &copy.dst);

    if (result == CUDA_SUCCESS) {
        result = place_from(src, &copy.src);
    }
    if (result == CUDA_SUCCESS) {
        *ret_copy = copy;
    }
    return result;
}

/* Makes a struct side from the members of `params` whose names begin with `end`, dst or src. */
#define SIDE(params, end)                                                                          \
    ((struct side){(params)->end##MemoryType, (params)->end##Host, (params)->end##Device,          \
                   (params)->end##Pitch, (params)->end##Height, (params)->end##XInBytes,           \
                   (params)->end##Y, (params)->end##Z})

CUresult sim_copy_from_3d(const CUDA_MEMCPY3D *params, struct sim_copy *ret_copy)
{
    struct side dst;
    struct side src;

    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    dst = SIDE(params, dst);
    src = SIDE(params, src);
    return copy_from(&dst, &src, params->WidthInBytes, params->Height, params->Depth, ret_copy);
}

CUresult sim_copy_from_3d_peer(const CUDA_MEMCPY3D_PEER *params, struct sim_copy *ret_copy)
{
    struct side dst;
    struct side src;

    dst = SIDE(params, dst);
    src = SIDE(params, src);
    return copy_from(&dst, &src, params->WidthInBytes, params->Height, params->Depth, ret_copy);
}
