/* Copies, memsets and hints: content, checks, and when they return to the host. */
#include "work.h"

#include <pthread.h>
#include <unistd.h>

#define WORDS 1024

static void fill_pattern(uint32_t *words, uint32_t seed)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = seed * 1000003U + i;
    }
}

static void test_directions(void **state)
{
    static uint32_t in[WORDS], out[WORDS];
    CUdeviceptr a = new_words(WORDS), b = new_words(WORDS);

    fill_pattern(in, 1);
    OK(cuMemcpyHtoD(a, in, sizeof(in)));
    OK(cuMemcpyDtoD(b, a, sizeof(in)));
    OK(cuMemcpyDtoH(out, b, sizeof(out)));
    assert_memory_equal(in, out, sizeof(in));

    fill_pattern(in, 2);
    OK(cuMemcpy(a, device_address(in), sizeof(in)));
    OK(cuMemcpyAsync(b, a, sizeof(in), NULL));
    OK(cuMemcpy(device_address(out), b, sizeof(in)));
    assert_memory_equal(in, out, sizeof(in));

    OK(cuMemcpyHtoDAsync(a + 3, "odd", 3, NULL)); /* no alignment is asked for */
    OK(cuMemcpyDtoH(out, a + 3, 3));
    assert_memory_equal(out, "odd", 3);
    OK(cuMemcpy(device_address(in), device_address(out), 16)); /* host to host */
    assert_memory_equal(in, out, 16);
    OK(cuMemcpyHtoD(a, in, 0));
}

static void test_bad_addresses(void **state)
{
    uint32_t host[4];
    CUdeviceptr words = new_words(WORDS), hole = reserve(2 * MIB);

    FAILS(cuMemcpyHtoD(device_address(host), host, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyDtoH(host, device_address(host), 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyDtoDAsync(words, device_address(host), 4, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyHtoD(hole, host, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyHtoD(0, host, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyHtoD(words, host, (size_t)1 << 40), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(words));
    FAILS(cuMemcpyHtoDAsync(words, host, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD8(words, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
    OK(cuMemAddressFree(hole, 2 * MIB));
}

/* A pageable source is read by the call, a page-locked one when the copy runs. */
static void test_staging(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(2);
    uint32_t pageable = 1, *pinned = new_flag(), *flag = new_flag();

    *pinned = 1;
    OK(launch_spin(work, stream, device_address(flag)));
    OK(cuMemcpyHtoDAsync(words, &pageable, 4, stream));
    OK(cuMemcpyHtoDAsync(words + 4, pinned, 4, stream));
    pageable = 2;
    *pinned = 2;
    *flag = 1;
    assert_int_equal(word_at(words, stream), 1);
    assert_int_equal(word_at(words + 4, stream), 2);
}

static void *release(void *flag)
{
    usleep(30000);
    __atomic_store_n((uint32_t *)flag, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* A copy to pageable memory returns when it is done, one to page-locked memory at once. */
static void test_device_to_host_waits_for_pageable(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(1);
    uint32_t pageable = 0, *pinned = new_flag(), *flag = new_flag();
    pthread_t thread;

    OK(launch_spin(work, stream, device_address(flag)));
    OK(cuMemsetD32Async(words, 7, 1, stream));
    OK(cuMemcpyDtoHAsync(pinned, words, 4, stream));
    assert_int_equal(*pinned, 0);
    FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    assert_int_equal(pthread_create(&thread, NULL, release, flag), 0);
    OK(cuMemcpyDtoHAsync(&pageable, words, 4, stream));
    assert_int_equal(pageable, 7);
    assert_int_equal(*pinned, 7);
    pthread_join(thread, NULL);
}

/* Synchronous calls within device memory do not wait for the device. */
static void test_synchronous_calls_that_do_not_wait(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(0), exempt = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(4);
    uint32_t *pinned = new_flag(), *flag = new_flag();
    pthread_t thread;

    OK(launch_spin(work, stream, device_address(flag)));
    OK(cuMemsetD32(words, 5, 1));
    OK(cuMemcpyDtoD(words + 4, words, 4));
    FAILS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    assert_int_equal(word_at(words + 4, exempt), 0);
    assert_int_equal(pthread_create(&thread, NULL, release, flag), 0);
    OK(cuMemsetD32(device_address(pinned), 6, 1)); /* but for page-locked memory */
    assert_int_equal(*pinned, 6);
    assert_int_equal(word_at(words + 4, exempt), 5);
    pthread_join(thread, NULL);
}

static void test_memset_widths(void **state)
{
    unsigned char bytes[16];
    CUdeviceptr words = new_words(4);

    OK(cuMemsetD8(words + 1, 0xab, 3));
    OK(cuMemsetD16(words + 4, 0x1234, 2));
    OK(cuMemsetD32(words + 8, 0x55667788, 1));
    OK(cuMemcpyDtoH(bytes, words, 16));
    assert_memory_equal(bytes, "\0\xab\xab\xab\x34\x12\x34\x12\x88\x77\x66\x55\0\0\0\0", 16);
    FAILS(cuMemsetD16(words + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD32(words + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemsetD32(words, 0, 0));
}

static void test_memset_rows(void **state)
{
    uint32_t out[16];
    CUdeviceptr words = new_words(16);

    OK(cuMemsetD2D32(words, 16, 9, 2, 4)); /* two words in each row of four */
    OK(cuMemcpyDtoH(out, words, sizeof(out)));
    for (int i = 0; i < 16; i++) {
        assert_int_equal(out[i], i % 4 < 2 ? 9 : 0);
    }
    FAILS(cuMemsetD2D32(words, 4, 9, 2, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD2D8Async(words, 4 * MIB, 9, 16, 2, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void test_rectangle(void **state)
{
    uint32_t in[8][8], out[8][8] = {{0}};
    CUdeviceptr words = new_words(64);
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = in,
        .srcPitch = sizeof(in[0]),
        .srcXInBytes = 4,
        .srcY = 1,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = words,
        .dstPitch = 32,
        .dstXInBytes = 8,
        .dstY = 2,
        .WidthInBytes = 12,
        .Height = 5,
    };

    for (uint32_t i = 0; i < 64; i++) {
        in[i / 8][i % 8] = 100 + i;
    }
    OK(cuMemcpy2D(&copy));
    OK(cuMemcpyDtoH(out, words, sizeof(out)));
    for (uint32_t y = 0; y < 8; y++) {
        for (uint32_t x = 0; x < 8; x++) {
            int inside = x >= 2 && x < 5 && y >= 2 && y < 7;

            assert_int_equal(out[y][x], inside ? in[y - 1][x - 1] : 0);
        }
    }
    copy.WidthInBytes = 40;
    FAILS(cuMemcpy2DUnaligned(&copy), CUDA_ERROR_INVALID_VALUE);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    FAILS(cuMemcpy2DAsync(&copy, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

static void test_box(void **state)
{
    uint32_t in[4][4][4], out[2][2][2];
    CUdeviceptr words = new_words(64);
    CUDA_MEMCPY3D copy = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = words,
        .srcPitch = 16,
        .srcHeight = 4,
        .srcXInBytes = 4,
        .srcY = 1,
        .srcZ = 2,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = out,
        .dstPitch = 8,
        .dstHeight = 2,
        .WidthInBytes = 8,
        .Height = 2,
        .Depth = 2,
    };

    for (uint32_t i = 0; i < 64; i++) {
        in[i / 16][i / 4 % 4][i % 4] = i;
    }
    OK(cuMemcpyHtoD(words, in, sizeof(in)));
    OK(cuMemcpy3D(&copy));
    for (int z = 0; z < 2; z++) {
        for (int y = 0; y < 2; y++) {
            for (int x = 0; x < 2; x++) {
                assert_int_equal(out[z][y][x], in[z + 2][y + 1][x + 1]);
            }
        }
    }
    copy.srcZ = 3; /* ends beyond the allocation's last slice, but within its granule */
    copy.srcDevice = words + (2 * MIB);
    FAILS(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
}

static void test_batch(void **state)
{
    CUstream stream = new_stream(0);
    uint32_t *pinned = new_flag();
    CUdeviceptr words = new_words(4);
    CUdeviceptr dsts[] = {words, words + 8}, srcs[] = {device_address(pinned), words + 12};
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t sizes[] = {4, 4}, first = 0;

    *pinned = 3;
    OK(cuMemsetD32Async(words + 12, 4, 1, stream));
    OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &attributes, &first, 1, stream));
    assert_int_equal(word_at(words, stream), 3);
    assert_int_equal(word_at(words + 8, stream), 4);
    FAILS(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &attributes, &first, 1, NULL),
          CUDA_ERROR_INVALID_VALUE);
}

static void test_peer(void **state)
{
    const struct work *work = *state;
    CUcontext other = NULL;
    CUdeviceptr here = new_words(1), there;
    uint32_t value = 0;

    OK(cuMemsetD32(here, 77, 1));
    OK(cuCtxSynchronize());
    OK(cuCtxCreate(&other, NULL, 0, 1));
    there = new_words(1);
    OK(cuMemcpyPeer(there, other, here, work->ctx, 4));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(&value, there, 4));
    assert_int_equal(value, 77);
    FAILS(cuMemcpyPeer(there, (CUcontext)0x10, here, work->ctx, 4), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxDestroy(other));
    OK(cuCtxSetCurrent(work->ctx));
}

static void test_hints(void **state)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUstream stream = new_stream(0);
    CUdeviceptr managed, words = new_words(1);

    OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemPrefetchAsync(managed, 4096, location, 0, stream));
    FAILS(cuMemPrefetchAsync(words, 4, location, 0, stream), CUDA_ERROR_INVALID_VALUE);
    location.id = 99;
    FAILS(cuMemPrefetchAsync(managed, 4096, location, 0, stream), CUDA_ERROR_INVALID_DEVICE);
    OK(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE));
    FAILS(cuStreamAttachMemAsync(NULL, managed, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamSynchronize(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_directions),
        WORK_TEST(test_bad_addresses),
        WORK_TEST(test_staging),
        WORK_TEST(test_device_to_host_waits_for_pageable),
        WORK_TEST(test_synchronous_calls_that_do_not_wait),
        WORK_TEST(test_memset_widths),
        WORK_TEST(test_memset_rows),
        WORK_TEST(test_rectangle),
        WORK_TEST(test_box),
        WORK_TEST(test_batch),
        WORK_TEST(test_peer),
        WORK_TEST(test_hints),
    };

    setenv("SPILLWAY_SIM_DEVICES", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
