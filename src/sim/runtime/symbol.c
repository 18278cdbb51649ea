/* Device variables, which a program names by the host address of their shadow. */
#include <stddef.h>

#include "sim/runtime/copy.h"
#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

SIMRT_API_PTDS(cudaMemcpyToSymbol, SIMRT_CONTEXT,
               (const void *symbol, const void *source, size_t size, size_t offset,
                enum cudaMemcpyKind kind))
{
    char *target;

    if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) {
        return cudaErrorInvalidMemcpyDirection;
    }
    cudaError_t error = simrt_variable_part(symbol, offset, size, &target);
    return error != cudaSuccess ? error : simrt_copy(ptsz, target, source, size, kind);
}

SIMRT_API_PTDS(cudaMemcpyFromSymbol, SIMRT_CONTEXT,
               (void *target, const void *symbol, size_t size, size_t offset,
                enum cudaMemcpyKind kind))
{
    char *source;

    if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) {
        return cudaErrorInvalidMemcpyDirection;
    }
    cudaError_t error = simrt_variable_part(symbol, offset, size, &source);
    return error != cudaSuccess ? error : simrt_copy(ptsz, target, source, size, kind);
}

SIMRT_API_PTSZ(cudaMemcpyToSymbolAsync, SIMRT_CONTEXT,
               (const void *symbol, const void *source, size_t size, size_t offset,
                enum cudaMemcpyKind kind, cudaStream_t stream))
{
    char *target;

    if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) {
        return cudaErrorInvalidMemcpyDirection;
    }
    cudaError_t error = simrt_variable_part(symbol, offset, size, &target);
    return error != cudaSuccess ? error
                                : simrt_copy_async(ptsz, target, source, size, kind, stream);
}

SIMRT_API_PTSZ(cudaMemcpyFromSymbolAsync, SIMRT_CONTEXT,
               (void *target, const void *symbol, size_t size, size_t offset,
                enum cudaMemcpyKind kind, cudaStream_t stream))
{
    char *source;

    if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) {
        return cudaErrorInvalidMemcpyDirection;
    }
    cudaError_t error = simrt_variable_part(symbol, offset, size, &source);
    return error != cudaSuccess ? error
                                : simrt_copy_async(ptsz, target, source, size, kind, stream);
}

SIMRT_API(cudaGetSymbolAddress, SIMRT_CONTEXT, (void **ret_address, const void *symbol))
{
    size_t size;

    return simrt_variable_find(symbol, ret_address, &size);
}

SIMRT_API(cudaGetSymbolSize, SIMRT_CONTEXT, (size_t * ret_size, const void *symbol))
{
    void *address;

    return simrt_variable_find(symbol, &address, ret_size);
}
