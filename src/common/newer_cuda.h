/* Declarations of CUDA 13's cuda.h that spillway uses and that older headers, back to 12.4, lack.
 * With any header, the preloaded object therefore intercepts the functions of CUDA 13, and the
 * simulated driver has them. This is needed because a driver may be newer than the program's
 * runtime.
 *
 * This header contains no code. Versions, numbers and layouts are from the driver's binary
 * interface. */
#pragma once

#include <cuda.h>

/* The newest version of the driver's interface that is known, with any header. */
#define SPW_NEWEST_CUDA (CUDA_VERSION < 13000 ? 13000 : CUDA_VERSION)

/* A function that CUDA `since` introduced. Declares the exported symbol, and the pointer type that
 * cudaTypedefs.h would have, named after base and version. _PAIR also declares the
 * per-thread-stream variant. */
#define SPW_NEWER(symbol, base, since, params)                                                     \
    CUresult CUDAAPI symbol params;                                                                \
    typedef CUresult(CUDAAPI *PFN_##base##_v##since) params;
#define SPW_NEWER_PAIR(symbol, base, since, params)                                                \
    SPW_NEWER(symbol, base, since, params)                                                         \
    CUresult CUDAAPI symbol##_ptsz params;                                                         \
    typedef CUresult(CUDAAPI *PFN_##base##_v##since##_ptsz) params;

#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st CUctxCreateParams;
struct CUctxCreateParams_st {
    CUexecAffinityParam *execAffinityParams;
    int numExecAffinityParams;
    void *cigParams;
};

SPW_NEWER(cuCtxCreate_v4, cuCtxCreate, 12050,
          (CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice device))
SPW_NEWER(cuCtxRecordEvent, cuCtxRecordEvent, 12050, (CUcontext context, CUevent event))
SPW_NEWER(cuCtxWaitEvent, cuCtxWaitEvent, 12050, (CUcontext context, CUevent event))
SPW_NEWER(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, 12050,
          (CUstream * stream, CUgreenCtx context, unsigned int flags, int priority))
SPW_NEWER(cuKernelGetLibrary, cuKernelGetLibrary, 12050, (CUlibrary * library, CUkernel kernel))
SPW_NEWER_PAIR(cuStreamGetCtx_v2, cuStreamGetCtx, 12050,
               (CUstream stream, CUcontext *context, CUgreenCtx *green))
#endif

#if CUDA_VERSION < 12060
typedef struct CUmemDecompressParams_st CUmemDecompressParams;

SPW_NEWER_PAIR(cuMemBatchDecompressAsync, cuMemBatchDecompressAsync, 12060,
               (CUmemDecompressParams * params, size_t count, unsigned int flags,
                size_t *error_index, CUstream stream))
#endif

#if CUDA_VERSION < 12080
#    define CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING 1
#    define CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE   ((CUpointer_attribute)21)
#    define CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B           ((CUtensorMapDataType)15)

typedef enum { CU_TENSOR_MAP_IM2COL_WIDE_MODE_W } CUtensorMapIm2ColWideMode;

typedef unsigned int CUmemcpySrcAccessOrder;

typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;
struct CUmemcpyAttributes_st {
    CUmemcpySrcAccessOrder srcAccessOrder;
    CUmemLocation srcLocHint, dstLocHint;
    unsigned int flags;
};

typedef enum {
    CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
    CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
} CUmemcpy3DOperandType;

typedef struct CUoffset3D_st CUoffset3D;
struct CUoffset3D_st {
    size_t x, y, z;
};

typedef struct CUextent3D_st CUextent3D;
struct CUextent3D_st {
    size_t width, height, depth;
};

/* One end of a copy of a volume. */
typedef struct CUmemcpy3DOperand_st CUmemcpy3DOperand;
struct CUmemcpy3DOperand_st {
    CUmemcpy3DOperandType type;
    union {
        struct {
            CUdeviceptr ptr;
            size_t rowLength, layerHeight; /* in elements */
            CUmemLocation locHint;
        } ptr;
        struct {
            CUarray array;
            CUoffset3D offset;
        } array;
    } op;
};

typedef struct CUDA_MEMCPY3D_BATCH_OP_st CUDA_MEMCPY3D_BATCH_OP;
struct CUDA_MEMCPY3D_BATCH_OP_st {
    CUmemcpy3DOperand src, dst;
    CUextent3D extent;
    CUmemcpySrcAccessOrder srcAccessOrder;
    unsigned int flags;
};

SPW_NEWER(cuTensorMapEncodeIm2colWide, cuTensorMapEncodeIm2colWide, 12080,
          (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address,
           const cuuint64_t *sizes, const cuuint64_t *strides, int lower_corner, int upper_corner,
           cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *element_strides,
           CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
           CUtensorMapFloatOOBfill fill))
SPW_NEWER(cuEventElapsedTime_v2, cuEventElapsedTime, 12080,
          (float *milliseconds, CUevent start, CUevent end))
SPW_NEWER_PAIR(cuStreamGetDevice, cuStreamGetDevice, 12080, (CUstream stream, CUdevice *device))
SPW_NEWER_PAIR(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080,
               (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count,
                CUmemcpyAttributes *attributes, size_t *firsts, size_t attribute_count,
                size_t *failed, CUstream stream))
SPW_NEWER_PAIR(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, 12080,
               (size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, size_t *failed,
                unsigned long long flags, CUstream stream))
#endif

#if CUDA_VERSION < 12090
SPW_NEWER(cuGreenCtxGetId, cuGreenCtxGetId, 12090, (CUgreenCtx context, unsigned long long *id))
#endif

#if CUDA_VERSION < 13000
SPW_NEWER(cuCtxGetDevice_v2, cuCtxGetDevice, 13000, (CUdevice * device, CUcontext context))
SPW_NEWER(cuCtxSynchronize_v2, cuCtxSynchronize, 13000, (CUcontext context))
SPW_NEWER(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000,
          (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type))
SPW_NEWER(cuMemGetMemPool, cuMemGetMemPool, 13000,
          (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type))
SPW_NEWER(cuMemSetMemPool, cuMemSetMemPool, 13000,
          (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool))
SPW_NEWER_PAIR(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync, 13000,
               (CUdeviceptr * ranges, size_t *sizes, size_t count, CUmemLocation *locations,
                size_t *firsts, size_t location_count, unsigned long long flags, CUstream stream))
SPW_NEWER_PAIR(cuMemDiscardBatchAsync, cuMemDiscardBatchAsync, 13000,
               (CUdeviceptr * ranges, size_t *sizes, size_t count, unsigned long long flags,
                CUstream stream))
SPW_NEWER_PAIR(cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync, 13000,
               (CUdeviceptr * ranges, size_t *sizes, size_t count, CUmemLocation *locations,
                size_t *firsts, size_t location_count, unsigned long long flags, CUstream stream))
SPW_NEWER_PAIR(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync, 13000,
               (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count,
                CUmemcpyAttributes *attributes, size_t *firsts, size_t attribute_count,
                CUstream stream))
SPW_NEWER_PAIR(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync, 13000,
               (size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, unsigned long long flags,
                CUstream stream))

#    define CU_MEM_ALLOCATION_TYPE_MANAGED                               ((CUmemAllocationType)2)
#    define CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ((CUdevice_attribute)145)
#    if CUDA_VERSION < 12090
#        define CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED                  \
            ((CUdevice_attribute)141)
#    endif
#    if CUDA_VERSION < 12080
#        define CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID                 ((CUdevice_attribute)139)
#        define CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID              ((CUdevice_attribute)140)
#        define CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED ((CUdevice_attribute)143)
#    endif
#endif
