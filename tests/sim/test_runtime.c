/* The simulated runtime as a program meets it: the file, devices, errors, memory, entry points.
 *
 *     test_runtime EXPORTS [CASE]     EXPORTS: the names it has to export, one a line
 *
 * Needs libcuda.so.1 of the simulator in the search path, and two devices. */
#include "test_runtime_common.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The variants for per-thread default streams, which the header declares under the plain name only.
 */
cudaError_t cudaMemcpyAsync_ptsz(void *target, const void *source, size_t size,
                                 enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset_ptds(void *address, int value, size_t size);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **address,
                                                  unsigned int version, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status);

static const char *exports_path;

/* ---- the file ---- */

static const char *program_needs(const struct link_map *map, size_t *ret_count)
{
    const char *strings = NULL;
    const char *last = NULL;
    size_t count = 0;

    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) {
            strings = (const char *)entry->d_un.d_ptr;
        }
    }
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED) {
            last = strings + entry->d_un.d_val;
            count++;
        }
    }
    *ret_count = count;
    return last;
}

static void test_file(void **state)
{
    struct link_map *map;
    size_t count;
    char name[256];
    size_t names = 0;
    void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);

    assert_non_null(library);
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_string_equal(program_needs(map, &count), "libc.so.6");
    assert_int_equal(count, 1);
#else
    (void)program_needs(map, &count);
#endif

    FILE *exports = fopen(exports_path, "r");
    assert_non_null(exports);
    while (fscanf(exports, "%255s", name) == 1) {
        if (dlvsym(library, name, "libcudart.so.13") == NULL) {
            fail_msg("%s@libcudart.so.13 is missing", name);
        }
        names++;
    }
    (void)fclose(exports);
    assert_true(names >= 422);

    /* One of each kind, should the list itself miss a kind. */
    static const char *const kinds[] = {
        "cudaMalloc",
        "cudaMemcpyAsync_ptsz",
        "cudaMemcpy_ptds",
        "cudaMemcpyToArray_ptds",
        "cudaGetDriverEntryPoint_ptsz",
        "cudaGLSetGLDevice",
        "cudaEGLStreamConsumerConnect",
        "cudaVDPAUGetDevice",
        "cudaProfilerStart",
        "__cudaLaunchKernel_ptsz",
        "__cudaRegisterUnifiedTable",
        "cudaGraphConditionalHandleCreate",
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        assert_non_null(dlvsym(library, kinds[i], "libcudart.so.13"));
    }
    assert_null(dlsym(library, "simrt_init"));
}

/* ---- errors ---- */

static void test_last_error(void **state)
{
    void *address;

    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    ok(cudaMalloc(&address, 256));
    assert_int_equal(cudaMemcpy(address, address, 1, (enum cudaMemcpyKind)7),
                     cudaErrorInvalidMemcpyDirection);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    ok(cudaFree(address));
    assert_string_equal(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    assert_string_equal(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
}

static void *other_thread(void *arg)
{
    *(cudaError_t *)arg = cudaPeekAtLastError();
    return NULL;
}

static void test_last_error_is_of_the_thread(void **state)
{
    pthread_t thread;
    cudaError_t seen = cudaErrorUnknown;

    assert_int_equal(cudaSetDevice(-1), cudaErrorInvalidDevice);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen, cudaSuccess);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
}

static void test_not_simulated(void **state)
{
    cudaArray_t array;
    struct cudaChannelFormatDesc format =
        cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);

    assert_int_equal(format.x, 32);
    assert_int_equal(format.f, cudaChannelFormatKindFloat);
    assert_int_equal(cudaMallocArray(&array, &format, 16, 16, 0), cudaErrorNotSupported);
    assert_int_equal(cudaGetLastError(), cudaErrorNotSupported);

    const void *table = &table;
    cudaUUID_t id = {{0}};
    assert_int_equal(cudaGetExportTable(&table, &id), cudaErrorNotSupported);
}

/* ---- devices and contexts ---- */

static void test_context_is_lazy(void **state)
{
    struct cudaDeviceProp properties;
    int count;
    int ordinal = -1;

    ok(cudaGetDeviceCount(&count));
    assert_int_equal(count, 2);
    ok(cudaGetDevice(&ordinal));
    assert_int_equal(ordinal, 0);
    ok(cudaGetDeviceProperties(&properties, 0));
    assert_false(primary_is_active(0));
    ok(cudaFree(NULL));
    assert_true(primary_is_active(0));
    assert_false(primary_is_active(1));
    ok(cudaInitDevice(1, 0, 0));
    assert_true(primary_is_active(1));
    ok(cudaGetDevice(&ordinal));
    assert_int_equal(ordinal, 0);
}

/* The device on which the calling thread allocates. */
static int device_of_malloc(void)
{
    struct cudaPointerAttributes attributes;
    void *address;

    ok(cudaMalloc(&address, MIB));
    ok(cudaPointerGetAttributes(&attributes, address));
    ok(cudaFree(address));
    return attributes.device;
}

static void *device_of_thread(void *arg)
{
    (void)cudaGetDevice(arg);
    return NULL;
}

static void test_device_switch(void **state)
{
    struct cudaPointerAttributes attributes;
    pthread_t thread;
    void *address;
    int ordinal = -1;

    ok(cudaSetDevice(1));
    assert_true(primary_is_active(1));
    assert_false(primary_is_active(0));
    ok(cudaGetDevice(&ordinal));
    assert_int_equal(ordinal, 1);
    ok(cudaMalloc(&address, MIB));
    ok(cudaPointerGetAttributes(&attributes, address));
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal(attributes.device, 1);
    assert_ptr_equal(attributes.devicePointer, address);

    assert_int_equal(pthread_create(&thread, NULL, device_of_thread, &ordinal), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(ordinal, 0);

    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
    ok(cudaGetDevice(&ordinal));
    assert_int_equal(ordinal, 1);
    ok(cudaFree(address));
}

static void test_current_context_is_respected(void **state)
{
    PFN_cuDevicePrimaryCtxRetain_v7000 retain;
    PFN_cuCtxSetCurrent_v4000 set;
    CUcontext context;
    int ordinal = -1;

    ok(cudaFree(NULL));
    *(void **)&retain = driver_symbol("cuDevicePrimaryCtxRetain");
    *(void **)&set = driver_symbol("cuCtxSetCurrent");
    assert_int_equal(retain(&context, 1), CUDA_SUCCESS);
    assert_int_equal(set(context), CUDA_SUCCESS);
    ok(cudaGetDevice(&ordinal));
    assert_int_equal(ordinal, 1);
    assert_int_equal(device_of_malloc(), 1);
}

static void test_default_device(void **state)
{
    int ordinals[] = {1, 0};

    ok(cudaSetValidDevices(ordinals, 2));
    assert_int_equal(device_of_malloc(), 1);
    assert_false(primary_is_active(0));
    ordinals[1] = 2;
    assert_int_equal(cudaSetValidDevices(ordinals, 2), cudaErrorInvalidDevice);
}

static void test_reset(void **state)
{
    size_t free_bytes;
    size_t total;
    size_t free_after;
    int ordinal = -1;
    void *address;

    ok(cudaSetDevice(1));
    ok(cudaMemGetInfo(&free_bytes, &total));
    ok(cudaMalloc(&address, 64 * MIB));
    ok(cudaDeviceReset());
    assert_false(primary_is_active(1));
    ok(cudaGetDevice(&ordinal));
    assert_int_equal(ordinal, 1);
    ok(cudaMemGetInfo(&free_after, &total));
    assert_int_equal(free_after, free_bytes);
    assert_int_equal(device_of_malloc(), 1);
    assert_false(primary_is_active(0));
}

static void test_properties(void **state)
{
    struct cudaDeviceProp p;
    size_t free_bytes;
    size_t total;
    int value;
    int least;
    int greatest;
    int peer;
    char bus[32];

    ok(cudaGetDeviceProperties(&p, 1));
    assert_true(strlen(p.name) > 0);
    assert_true(p.major >= 7);
    assert_int_equal(p.warpSize, 32);
    assert_true(p.multiProcessorCount > 0);
    assert_true(p.maxThreadsPerBlock >= 1024);
    assert_int_equal(p.unifiedAddressing, 1);
    ok(cudaSetDevice(1));
    ok(cudaMemGetInfo(&free_bytes, &total));
    assert_int_equal(p.totalGlobalMem, total);
    ok(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1));
    assert_int_equal(value, p.multiProcessorCount);
    assert_int_equal(cudaGetDeviceProperties(&p, 2), cudaErrorInvalidDevice);
    ok(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    assert_true(greatest < least);
    ok(cudaDeviceGetPCIBusId(bus, sizeof(bus), 1));
    ok(cudaDeviceGetByPCIBusId(&value, bus));
    assert_int_equal(value, 1);
    ok(cudaDeviceCanAccessPeer(&peer, 0, 1));
    ok(cudaRuntimeGetVersion(&value));
    assert_int_equal(value, CUDART_VERSION);
    ok(cudaDriverGetVersion(&value));
    assert_true(value >= CUDART_VERSION);
    ok(cudaDeviceGetLimit(&free_bytes, cudaLimitStackSize));
}

/* ---- memory ---- */

static void test_device_memory(void **state)
{
    size_t before;
    size_t during;
    size_t after;
    size_t total;
    void *address = (void *)1;
    void *huge;

    ok(cudaMalloc(&address, 0));
    assert_null(address);
    ok(cudaFree(NULL));
    assert_int_equal(cudaMalloc(NULL, 1), cudaErrorInvalidValue);

    ok(cudaMemGetInfo(&before, &total));
    ok(cudaMalloc(&address, 32 * MIB));
    ok(cudaMemGetInfo(&during, &total));
    assert_true(during + 32 * MIB <= before);
    (void)cudaGetLastError();
    assert_int_equal(cudaMalloc(&huge, 2 * total), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    ok(cudaFree(address));
    ok(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    assert_int_equal(cudaFree(address), cudaErrorInvalidValue);
}

static void test_copies(void **state)
{
    enum { COUNT = 1000 };
    uint32_t out[COUNT];
    uint32_t in[COUNT];
    char rows[4][10];
    char *address;
    char *second;

    for (uint32_t i = 0; i < COUNT; i++) {
        out[i] = i * i;
    }
    ok(cudaMalloc((void **)&address, sizeof(out)));
    ok(cudaMalloc((void **)&second, sizeof(out)));
    ok(cudaMemcpy(address, out, sizeof(out), cudaMemcpyHostToDevice));
    ok(cudaMemcpy(second, address, sizeof(out), cudaMemcpyDeviceToDevice));
    ok(cudaMemcpyAsync(in, second, sizeof(in), cudaMemcpyDefault, 0));
    ok(cudaStreamSynchronize(0));
    assert_memory_equal(in, out, sizeof(out));
    ok(cudaMemcpy(in, out, 0, cudaMemcpyHostToDevice));
    memset(in, 0, sizeof(in));
    ok(cudaMemcpy(in, out, sizeof(out), cudaMemcpyHostToHost));
    assert_memory_equal(in, out, sizeof(out));

    ok(cudaMemset(address, 0x5a, 64));
    ok(cudaMemset2D(address, 16, 0x11, 4, 4));
    ok(cudaMemcpy2D(rows, 10, address, 16, 10, 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(rows[i], "\x11\x11\x11\x11\x5a\x5a\x5a\x5a\x5a\x5a", 10);
    }
    assert_int_equal(cudaMemcpy2D(rows, 4, address, 16, 10, 4, cudaMemcpyDeviceToHost),
                     cudaErrorInvalidPitchValue);
    ok(cudaFree(address));
    ok(cudaFree(second));
}

static void test_copy_3d(void **state)
{
    struct cudaPitchedPtr cube;
    struct cudaExtent extent = {.width = 8, .height = 3, .depth = 2};
    struct cudaExtent inner = {.width = 4, .height = 2, .depth = 2};
    char host[2][3][8];

    ok(cudaMalloc3D(&cube, extent));
    assert_true(cube.pitch >= 8);
    ok(cudaMemset3D(cube, 7, extent));
    ok(cudaMemset3D(cube, 9, inner));
    struct cudaMemcpy3DParms parms = {
        .srcPtr = cube,
        .dstPtr = {.ptr = host, .pitch = 8, .xsize = 8, .ysize = 3},
        .extent = extent,
        .kind = cudaMemcpyDeviceToHost,
    };
    ok(cudaMemcpy3D(&parms));
    for (int z = 0; z < 2; z++) {
        for (int y = 0; y < 3; y++) {
            assert_memory_equal(host[z][y], y < 2 ? "\x9\x9\x9\x9\x7\x7\x7\x7" : "\7\7\7\7\7\7\7\7",
                                8);
        }
    }
    ok(cudaFree(cube.ptr));
}

static void test_host_memory(void **state)
{
    struct cudaPointerAttributes attributes;
    char plain[16] = {0};
    void *pinned = NULL;
    void *address;
    unsigned int flags;

    ok(cudaPointerGetAttributes(&attributes, plain));
    assert_int_equal(attributes.type, cudaMemoryTypeUnregistered);
    assert_int_equal(attributes.device, cudaInvalidDeviceId);
    ok(cudaHostAlloc(&pinned, MIB, cudaHostAllocMapped));
    memset(pinned, 3, MIB);
    ok(cudaPointerGetAttributes(&attributes, pinned));
    assert_int_equal(attributes.type, cudaMemoryTypeHost);
    assert_ptr_equal(attributes.hostPointer, pinned);
    ok(cudaHostGetDevicePointer(&address, pinned, 0));
    ok(cudaHostGetFlags(&flags, pinned));
    assert_true(flags & cudaHostAllocMapped);
    ok(cudaFreeHost(pinned));
    ok(cudaFreeHost(NULL));

    void *pages = aligned_alloc(4096, 16 * 4096);
    ok(cudaHostRegister(pages, 16 * 4096, cudaHostRegisterDefault));
    assert_int_equal(cudaHostRegister(pages, 16 * 4096, cudaHostRegisterDefault),
                     cudaErrorHostMemoryAlreadyRegistered);
    ok(cudaHostUnregister(pages));
    free(pages);
}

static void test_stream_ordered(void **state)
{
    cudaMemPool_t pool;
    cudaMemPool_t own;
    cudaStream_t stream;
    uint64_t used = 1;
    uint64_t threshold = UINT64_MAX;
    void *address;
    int value = 1;

    ok(cudaDeviceGetDefaultMemPool(&pool, 0));
    ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    ok(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &value));
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ok(cudaMallocAsync(&address, 3 * MIB, stream));
    ok(cudaMemsetAsync(address, 1, 3 * MIB, stream));
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    assert_true(used >= 3 * MIB);
    ok(cudaFreeAsync(address, stream));
    ok(cudaStreamSynchronize(stream));
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    assert_int_equal(used, 0);
    ok(cudaMemPoolTrimTo(pool, 0));
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &used));
    assert_int_equal(used, 0);

    struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = 0},
    };
    ok(cudaMemPoolCreate(&own, &properties));
    ok(cudaMallocFromPoolAsync(&address, MIB, own, stream));
    ok(cudaFreeAsync(address, stream));
    ok(cudaStreamDestroy(stream));
    ok(cudaMemPoolDestroy(own));
}

/* ---- the driver behind it ---- */

static void test_entry_points(void **state)
{
    enum cudaDriverEntryPointQueryResult status;
    void *address = NULL;
    void *other = NULL;

    ok(cudaGetDriverEntryPointByVersion("cuMemAlloc", &address, 12000, cudaEnableDefault, &status));
    assert_int_equal(status, cudaDriverEntryPointSuccess);
    assert_ptr_equal(address, driver_symbol("cuMemAlloc_v2"));
    ok(cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &address, 11030, 0, &status));
    assert_ptr_equal(address, driver_symbol("cuStreamGetCaptureInfo_v2"));
    ok(cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &address, 12030, 0, NULL));
    assert_ptr_equal(address, driver_symbol("cuStreamGetCaptureInfo_v3"));
    ok(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &address, 11020,
                                        cudaEnablePerThreadDefaultStream, &status));
    assert_ptr_equal(address, driver_symbol("cuMemAllocAsync_ptsz"));
    ok(cudaGetDriverEntryPointByVersion_ptsz("cuMemAllocAsync", &other, 11020, cudaEnableDefault,
                                             &status));
    assert_ptr_equal(other, address);
    ok(cudaGetDriverEntryPointByVersion_ptsz("cuMemAllocAsync", &other, 11020,
                                             cudaEnableLegacyStream, &status));
    assert_ptr_equal(other, driver_symbol("cuMemAllocAsync"));

    address = &address;
    ok(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &address, 12000, 0, &status));
    assert_null(address);
    assert_int_equal(status, cudaDriverEntryPointSymbolNotFound);
    ok(cudaGetDriverEntryPointByVersion("cuGraphAddNode", &address, 11000, 0, &status));
    assert_null(address);
    assert_int_equal(status, cudaDriverEntryPointVersionNotSufficent);
    /* The version goes to the driver unchanged, which takes any (docs/dev/driver.md). */
    ok(cudaGetDriverEntryPointByVersion("cuInit", &address, 99000, 0, &status));
    assert_ptr_equal(address, driver_symbol("cuInit"));
    assert_false(primary_is_active(0));
}

static void test_look_up(void **state)
{
    char *address;
    char byte = 1;
    int count;

    assert_int_equal(calls("cuInit"), 0);
    assert_int_equal(calls("cuGetProcAddress_v2"), 0);
    ok(cudaGetDeviceCount(&count));
    assert_true(calls("cuGetProcAddress_v2") > 250);
    assert_int_equal(calls("cuInit"), 1);

    ok(cudaMalloc((void **)&address, 16));
    assert_int_equal(calls("cuMemAlloc_v2"), 1);
    ok(cudaMemcpyAsync(address, &byte, 1, cudaMemcpyHostToDevice, 0));
    assert_int_equal(calls("cuMemcpyHtoDAsync_v2"), 1);
    ok(cudaMemcpyAsync_ptsz(address, &byte, 1, cudaMemcpyHostToDevice, 0));
    assert_int_equal(calls("cuMemcpyHtoDAsync_v2_ptsz"), 1);
    ok(cudaMemset_ptds(address, 0, 16));
    assert_int_equal(calls("cuMemsetD8_v2_ptds"), 1);
    assert_int_equal(calls("cuGetExportTable"), 0);
}

/* In a process of its own, run without the simulator in the search path. */
static int without_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *address;
    int count = -1;
    int version = -1;

    if (library != NULL) {
        return EXIT_SUCCESS; /* there is a real one here */
    }
    bool right = cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver && count == 0 &&
                 cudaDriverGetVersion(&version) == cudaSuccess && version == 0 &&
                 cudaMalloc(&address, 1) == cudaErrorInsufficientDriver &&
                 cudaGetLastError() == cudaErrorInsufficientDriver &&
                 cudaGetLastError() == cudaSuccess;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void test_without_driver(void **state)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        (void)unsetenv("LD_LIBRARY_PATH");
        (void)execl("/proc/self/exe", "test_runtime", "--without-driver", NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_file),
    cmocka_unit_test(test_last_error),
    cmocka_unit_test(test_last_error_is_of_the_thread),
    cmocka_unit_test(test_not_simulated),
    cmocka_unit_test(test_context_is_lazy),
    cmocka_unit_test(test_device_switch),
    cmocka_unit_test(test_current_context_is_respected),
    cmocka_unit_test(test_default_device),
    cmocka_unit_test(test_reset),
    cmocka_unit_test(test_properties),
    cmocka_unit_test(test_device_memory),
    cmocka_unit_test(test_copies),
    cmocka_unit_test(test_copy_3d),
    cmocka_unit_test(test_host_memory),
    cmocka_unit_test(test_stream_ordered),
    cmocka_unit_test(test_entry_points),
    cmocka_unit_test(test_look_up),
    cmocka_unit_test(test_without_driver),
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--without-driver") == 0) {
        return without_driver();
    }
    if (argc < 2) {
        (void)fprintf(stderr, "usage: test_runtime EXPORTS [CASE]\n");
        return 2;
    }
    exports_path = argv[1];
    return run_cases(tests, sizeof(tests) / sizeof(tests[0]), argc > 2 ? argv[2] : NULL) != 0;
}
