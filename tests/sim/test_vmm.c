/* Virtual memory management: every rule of cuda.h, the budget, access by the process, sharing. */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUDGET  (64 * MIB)
#define GRANULE (2 * MIB)

static sigjmp_buf on_fault;

static void jump_out(int number)
{
    siglongjmp(on_fault, 1);
}

/* True if the process can read, or with `write` write, a byte. */
static bool can_touch(CUdeviceptr address, bool write)
{
    struct sigaction action = {.sa_handler = jump_out}, old_segv, old_bus;
    volatile char *byte = (volatile char *)(uintptr_t)address;
    volatile bool could = false;

    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    if (sigsetjmp(on_fault, 1) == 0) {
        char value = *byte;

        if (write) {
            *byte = value;
        }
        could = true;
    }
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return could;
}

static void map_chunk(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle)
{
    OK(cuMemMap(address, size, 0, handle, 0));
}

static void test_reserve(void **state)
{
    CUdeviceptr address = 0, other = 0;

    FAILS(cuMemAddressReserve(NULL, GRANULE, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&address, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&address, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&address, GRANULE, 3 * MIB, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&address, GRANULE, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);

    OK(cuMemAddressReserve(&address, 4 * GRANULE, 1 * GIB, 0, 0));
    assert_int_equal(address % GIB, 0);
    assert_false(can_touch(address, false));
    FAILS(cuMemAddressFree(address, GRANULE), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressFree(address + GRANULE, 3 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(address, 4 * GRANULE));
    FAILS(cuMemAddressFree(address, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE);

    /* The hint is taken where it is free, and is only a hint where it is not. */
    OK(cuMemAddressReserve(&other, 4 * GRANULE, 0, address, 0));
    assert_int_equal(other, address);
    OK(cuMemAddressReserve(&address, 4 * GRANULE, 0, other, 0));
    assert_int_not_equal(other, address);
    OK(cuMemAddressFree(address, 4 * GRANULE));
    OK(cuMemAddressFree(other, 4 * GRANULE));
}

static void test_create_rules(void **state)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = 0;
    size_t granularity = 0;

    OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(granularity, GRANULE);
    FAILS(cuMemCreate(NULL, GRANULE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(&handle, GRANULE + 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(&handle, GRANULE, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(&handle, GRANULE, &prop, 1), CUDA_ERROR_INVALID_VALUE);
    prop.location.id = 7;
    FAILS(cuMemCreate(&handle, GRANULE, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};
    FAILS(cuMemCreate(&handle, GRANULE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 1};
    FAILS(cuMemCreate(&handle, GRANULE, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    FAILS(cuMemCreate(&handle, GRANULE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop = device_memory(0);
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    FAILS(cuMemCreate(&handle, GRANULE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop = device_memory(0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    FAILS(cuMemCreate(&handle, GRANULE, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(handle, 0);
    assert_int_equal(free_bytes(), BUDGET);
}

static void test_budget_is_exact(void **state)
{
    CUmemGenericAllocationHandle handles[BUDGET / GRANULE], extra = 0, stale;
    CUmemAllocationProp prop = device_memory(0);
    const size_t count = BUDGET / GRANULE;

    for (size_t i = 0; i < count; i++) {
        handles[i] = create_chunk(GRANULE);
        assert_int_equal(free_bytes(), BUDGET - (i + 1) * GRANULE);
    }
    FAILS(cuMemCreate(&extra, GRANULE, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    stale = handles[3];
    OK(cuMemRelease(stale));
    FAILS(cuMemRelease(stale), CUDA_ERROR_INVALID_VALUE);
    handles[3] = create_chunk(GRANULE);
    FAILS(cuMemRelease(stale), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        OK(cuMemRelease(handles[i]));
    }
    assert_int_equal(free_bytes(), BUDGET);
    FAILS(cuMemRelease(handles[3]), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
}

static void test_map_rules(void **state)
{
    CUmemGenericAllocationHandle small = create_chunk(GRANULE), large = create_chunk(2 * GRANULE);
    CUdeviceptr address = reserve(4 * GRANULE);

    FAILS(cuMemMap(address, GRANULE, GRANULE, large, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address, 2 * GRANULE, GRANULE, large, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address, GRANULE, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address, 2 * GRANULE, 0, small, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address + 4096, GRANULE, 0, small, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address, GRANULE, 0, small, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address, GRANULE, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address + 3 * GRANULE, 2 * GRANULE, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(4096 * GRANULE, GRANULE, 0, small, 0), CUDA_ERROR_INVALID_VALUE);

    map_chunk(address + GRANULE, 2 * GRANULE, large);
    FAILS(cuMemMap(address, 2 * GRANULE, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(address + 2 * GRANULE, GRANULE, 0, small, 0), CUDA_ERROR_INVALID_VALUE);
    map_chunk(address, GRANULE, small);
    FAILS(cuMemAddressFree(address, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE);

    FAILS(cuMemUnmap(address, 2 * GRANULE), CUDA_ERROR_INVALID_VALUE); /* cuts the large one */
    FAILS(cuMemUnmap(address + 2 * GRANULE, GRANULE), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemUnmap(address, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE); /* the last is not mapped */
    FAILS(cuMemUnmap(address, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(address, 3 * GRANULE));
    FAILS(cuMemUnmap(address, 3 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(small));
    OK(cuMemRelease(large));
    OK(cuMemAddressFree(address, 4 * GRANULE));
    assert_int_equal(free_bytes(), BUDGET);
}

static void test_access_rules(void **state)
{
    CUmemGenericAllocationHandle first = create_chunk(GRANULE), second = create_chunk(GRANULE);
    CUdeviceptr address = reserve(4 * GRANULE);
    CUmemAccessDesc desc = read_write(0);
    unsigned long long flags = 99;

    map_chunk(address, GRANULE, first);
    map_chunk(address + GRANULE, GRANULE, second);
    assert_false(can_touch(address, false)); /* new mappings have no access */
    OK(cuMemGetAccess(&flags, &desc.location, address));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);

    FAILS(cuMemSetAccess(address, 3 * GRANULE, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemSetAccess(address + 4096, GRANULE, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemSetAccess(address, 2 * GRANULE, &desc, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemSetAccess(address, 2 * GRANULE, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    desc.location.id = 9;
    FAILS(cuMemSetAccess(address, 2 * GRANULE, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
    desc.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    FAILS(cuMemSetAccess(address, 2 * GRANULE, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    assert_false(can_touch(address, false));

    allow(address, 2 * GRANULE);
    assert_true(can_touch(address + 2 * GRANULE - 1, true));
    desc = read_write(0);
    OK(cuMemGetAccess(&flags, &desc.location, address + GRANULE + 17));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    OK(cuMemSetAccess(address + GRANULE, GRANULE, &desc, 1));
    assert_true(can_touch(address, true));
    assert_true(can_touch(address + GRANULE, false));
    assert_false(can_touch(address + GRANULE, true));
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemSetAccess(address, GRANULE, &desc, 1));
    assert_false(can_touch(address, false));

    OK(cuMemUnmap(address, 2 * GRANULE));
    assert_false(can_touch(address + GRANULE, false));
    FAILS(cuMemGetAccess(&flags, &desc.location, address), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(first));
    OK(cuMemRelease(second));
    OK(cuMemAddressFree(address, 4 * GRANULE));
}

/* The content belongs to the chunk: it survives a move to another address, and two mappings of one
 * chunk show the same. */
static void test_content_moves_with_the_chunk(void **state)
{
    CUmemGenericAllocationHandle first = create_chunk(GRANULE), second = create_chunk(GRANULE);
    CUmemGenericAllocationHandle third;
    CUdeviceptr address = reserve(8 * GRANULE);
    unsigned char byte = 0;

    map_chunk(address, GRANULE, first);
    map_chunk(address + GRANULE, GRANULE, second);
    allow(address, 2 * GRANULE);
    memset((void *)(uintptr_t)address, 'a', GRANULE);
    memset((void *)(uintptr_t)(address + GRANULE), 'b', GRANULE);
    OK(cuMemUnmap(address, 2 * GRANULE));

    map_chunk(address, GRANULE, second); /* where the other one was */
    map_chunk(address + 4 * GRANULE, GRANULE, first);
    map_chunk(address + 6 * GRANULE, GRANULE, first);
    allow(address, GRANULE);
    allow(address + 4 * GRANULE, GRANULE);
    allow(address + 6 * GRANULE, GRANULE);
    assert_int_equal(*(char *)(uintptr_t)address, 'b');
    assert_int_equal(*(char *)(uintptr_t)(address + 5 * GRANULE - 1), 'a');
    *(char *)(uintptr_t)(address + 4 * GRANULE + 5) = 'c';
    assert_int_equal(*(char *)(uintptr_t)(address + 6 * GRANULE + 5), 'c');
    OK(cuMemcpyDtoH(&byte, address + 6 * GRANULE + 5, 1));
    assert_int_equal(byte, 'c');

    /* A new chunk where another one, which still lives, was mapped first. */
    third = create_chunk(GRANULE);
    map_chunk(address + GRANULE, GRANULE, third);
    allow(address + GRANULE, GRANULE);
    assert_int_equal(*(char *)(uintptr_t)(address + GRANULE), 0);
    memset((void *)(uintptr_t)(address + GRANULE), 'd', GRANULE);
    assert_int_equal(*(char *)(uintptr_t)address, 'b');
    OK(cuMemUnmap(address + GRANULE, GRANULE));
    OK(cuMemRelease(third));

    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemUnmap(address + 4 * GRANULE, GRANULE));
    OK(cuMemUnmap(address + 6 * GRANULE, GRANULE));
    OK(cuMemRelease(first));
    OK(cuMemRelease(second));

    /* New memory at the same place does not show what was there. */
    first = create_chunk(GRANULE);
    map_chunk(address, GRANULE, first);
    allow(address, GRANULE);
    assert_int_equal(*(char *)(uintptr_t)address, 0);
    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemRelease(first));
    OK(cuMemAddressFree(address, 8 * GRANULE));
    assert_int_equal(free_bytes(), BUDGET);
}

static void test_references(void **state)
{
    CUmemGenericAllocationHandle handle = create_chunk(GRANULE), again = 0;
    CUdeviceptr address = reserve(GRANULE);

    map_chunk(address, GRANULE, handle);
    OK(cuMemRelease(handle));
    assert_int_equal(free_bytes(), BUDGET - GRANULE); /* the mapping keeps it */
    FAILS(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + 12345)));
    assert_int_equal(again, handle); /* cuda.h: the same value */
    OK(cuMemUnmap(address, GRANULE));
    assert_int_equal(free_bytes(), BUDGET - GRANULE); /* the reference keeps it */
    FAILS(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(again));
    assert_int_equal(free_bytes(), BUDGET);
    OK(cuMemAddressFree(address, GRANULE));
}

static void test_properties(void **state)
{
    CUmemAllocationProp prop = device_memory(0), got = {0};
    CUmemGenericAllocationHandle handle = 0;

    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemCreate(&handle, GRANULE, &prop, 0));
    OK(cuMemGetAllocationPropertiesFromHandle(&got, handle));
    assert_int_equal(got.type, CU_MEM_ALLOCATION_TYPE_PINNED);
    assert_int_equal(got.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(got.location.id, 0);
    assert_int_equal(got.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    OK(cuMemRelease(handle));
    FAILS(cuMemGetAllocationPropertiesFromHandle(&got, handle), CUDA_ERROR_INVALID_VALUE);
}

static void test_host_chunks(void **state)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0},
    };
    CUmemAccessDesc desc = {
        .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    CUmemGenericAllocationHandle handle = 0, extra = 0;
    CUdeviceptr address = reserve(2 * GRANULE);

    OK(cuMemCreate(&handle, 2 * GRANULE, &prop, 0));
    assert_int_equal(free_bytes(), BUDGET); /* not of the device */
    FAILS(cuMemCreate(&extra, 4 * GRANULE, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY); /* of the host */
    map_chunk(address, 2 * GRANULE, handle);
    assert_false(can_touch(address, false));
    OK(cuMemSetAccess(address, 2 * GRANULE, &desc, 1));
    assert_true(can_touch(address, true));
    allow(address, 2 * GRANULE);
    OK(cuMemsetD8(address, 7, 2 * GRANULE));
    assert_int_equal(*(char *)(uintptr_t)(address + GRANULE), 7);
    OK(cuMemUnmap(address, 2 * GRANULE));
    OK(cuMemRelease(handle));
    OK(cuMemCreate(&extra, 4 * GRANULE, &prop, 0));
    OK(cuMemRelease(extra));
    OK(cuMemAddressFree(address, 2 * GRANULE));
}

/* A call of this thread, each in a global-mode capture of its own, which it breaks, unless the
 * thread has said that it knows what it does. */
static void test_capture(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = create_chunk(GRANULE), extra = 0;
    CUdeviceptr address = reserve(2 * GRANULE);
    CUmemAccessDesc desc = read_write(0);
    CUstream stream = NULL;
    CUgraph graph = NULL;

    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    map_chunk(address, GRANULE, handle);
    for (int call = 0; call < 5; call++) {
        CUresult result = CUDA_SUCCESS;

        OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        switch (call) {
        case 0:
            result = cuMemCreate(&extra, GRANULE, &prop, 0);
            break;
        case 1:
            result = cuMemMap(address + GRANULE, GRANULE, 0, handle, 0);
            break;
        case 2:
            result = cuMemSetAccess(address, GRANULE, &desc, 1);
            break;
        case 3:
            result = cuMemUnmap(address, GRANULE);
            break;
        default:
            result = cuMemRelease(handle);
            break;
        }
        assert_int_equal(result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    allow(address, GRANULE);
    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemRelease(handle));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(stream));
    OK(cuMemAddressFree(address, 2 * GRANULE));
    assert_int_equal(free_bytes(), BUDGET);
}

/* Exported memory: in this process it is the same chunk; the content is shared with another. */
static void test_export_here(void **state)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = 0, imported = 0;
    CUdeviceptr address = reserve(GRANULE);
    int fd = -1, other = -1;

    OK(cuMemCreate(&handle, GRANULE, &prop, 0));
    FAILS(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          CUDA_ERROR_INVALID_VALUE); /* was not asked for */
    OK(cuMemRelease(handle));

    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemCreate(&handle, GRANULE, &prop, 0));
    map_chunk(address, GRANULE, handle);
    allow(address, GRANULE);
    *(char *)(uintptr_t)(address + 99) = 'x';
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_int_equal(*(char *)(uintptr_t)(address + 99), 'x'); /* moved, but still there */
    *(char *)(uintptr_t)(address + 98) = 'y';
    OK(cuMemExportToShareableHandle(&other, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_int_not_equal(fd, other);

    OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    assert_int_equal(free_bytes(), BUDGET - GRANULE);
    OK(cuMemRelease(handle));
    OK(cuMemUnmap(address, GRANULE));
    assert_int_equal(free_bytes(), BUDGET - GRANULE);
    map_chunk(address, GRANULE, imported);
    allow(address, GRANULE);
    assert_int_equal(*(char *)(uintptr_t)(address + 98), 'y');
    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemRelease(imported));
    assert_int_equal(free_bytes(), BUDGET);
    OK(cuMemAddressFree(address, GRANULE));
    close(fd);
    close(other);
    FAILS(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)0,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          CUDA_ERROR_INVALID_VALUE); /* stdin is not memory */
}

static void send_fd(int socket, int fd)
{
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    assert_int_equal(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
    char space[CMSG_SPACE(sizeof(int))], byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    int fd = -1;

    if (recvmsg(socket, &message, 0) == 1) {
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    }
    return fd;
}

/* The other process: imports what comes over the socket, checks and changes it. Returns what it
 * exits with. */
static int importer(int socket)
{
    CUmemGenericAllocationHandle handle = 0;
    int fd = receive_fd(socket);
    CUdeviceptr address;
    unsigned char byte = 0;

    if (use_device(NULL) != 0 ||
        cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
        return 1;
    }
    if (free_bytes() != BUDGET) {
        return 2; /* it is charged where it was created */
    }
    address = reserve(GRANULE);
    map_chunk(address, GRANULE, handle);
    allow(address, GRANULE);
    if (cuMemcpyDtoH(&byte, address + 7, 1) != 0 || byte != 'q') {
        return 3;
    }
    byte = 'r';
    if (cuMemcpyHtoD(address + 8, &byte, 1) != 0 || cuMemUnmap(address, GRANULE) != 0 ||
        cuMemRelease(handle) != 0) {
        return 4;
    }
    return free_bytes() == BUDGET ? 0 : 5;
}

/* In the other order of life: the child is forked before this process touches the driver. */
static int sockets[2];
static pid_t child;

static void test_export_to_another_process(void **state)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = reserve(GRANULE);
    int fd = -1, status = 0;

    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemCreate(&handle, GRANULE, &prop, 0));
    map_chunk(address, GRANULE, handle);
    allow(address, GRANULE);
    OK(cuMemsetD8(address, 'q', GRANULE));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(sockets[0], fd);
    close(fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(*(char *)(uintptr_t)(address + 8), 'r');
    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(address, GRANULE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserve),         cmocka_unit_test(test_create_rules),
        cmocka_unit_test(test_budget_is_exact), cmocka_unit_test(test_map_rules),
        cmocka_unit_test(test_access_rules),    cmocka_unit_test(test_content_moves_with_the_chunk),
        cmocka_unit_test(test_references),      cmocka_unit_test(test_properties),
        cmocka_unit_test(test_host_chunks),     cmocka_unit_test(test_capture),
        cmocka_unit_test(test_export_here),     cmocka_unit_test(test_export_to_another_process),
    };

    setenv("SPILLWAY_SIM_MEMORY", "64MiB", 1);
    setenv("SPILLWAY_SIM_CAPTURE_VMM", "unsafe", 1);
    setenv("SPILLWAY_SIM_HOST_MEMORY", "8MiB", 1);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) {
        return 1;
    }
    child = fork();
    if (child == 0) {
        _exit(importer(sockets[1]));
    }
    return cmocka_run_group_tests(tests, use_device, NULL);
}
