/* Legacy IPC of cuMemAlloc memory, between a process and one forked before either used the driver.
 */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_child[2];
static pid_t child;

/* Opens what comes through the pipe; what it exits with. */
static int opener(void)
{
    CUdeviceptr address = 0, again = 0;
    CUipcMemHandle handle;
    unsigned char byte = 0;

    if (read(to_child[0], &handle, sizeof(handle)) != sizeof(handle) || use_device(NULL) != 0) {
        return 1;
    }
    if (cuIpcOpenMemHandle(&address, handle, 0) != CUDA_ERROR_INVALID_VALUE) {
        return 2;
    }
    if (cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != 0 ||
        cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != 0 ||
        address != again) {
        return 3;
    }
    if (cuMemcpyDtoH(&byte, address + 1000, 1) != 0 || byte != 'i') {
        return 4;
    }
    byte = 'j';
    if (cuMemcpyHtoD(address + 2000, &byte, 1) != 0 ||
        cuMemFree(address) != CUDA_ERROR_INVALID_VALUE) {
        return 5;
    }
    if (cuIpcCloseMemHandle(address) != 0 || cuMemcpyDtoH(&byte, address, 1) != 0 ||
        cuIpcCloseMemHandle(address) != 0) {
        return 6;
    }
    return cuIpcCloseMemHandle(address) == CUDA_ERROR_INVALID_VALUE ? 0 : 7;
}

static void test_open_elsewhere(void **state)
{
    CUdeviceptr small = 0, address = 0, opened = 0;
    CUipcMemHandle handle;
    unsigned char byte = 0;
    int status = 0;

    OK(cuMemAlloc(&small, 100)); /* so that the next one is not at the start of its slab */
    OK(cuMemAlloc(&address, 10000));
    OK(cuMemsetD8(address, 'i', 10000));
    OK(cuIpcGetMemHandle(&handle, address));
    FAILS(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
          CUDA_ERROR_INVALID_CONTEXT); /* not in the same process */
    OK(cuMemcpyDtoH(&byte, address + 3, 1));
    assert_int_equal(byte, 'i'); /* exporting has moved it, not lost it */
    assert_int_equal(write(to_child[1], &handle, sizeof(handle)), sizeof(handle));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    OK(cuMemcpyDtoH(&byte, address + 2000, 1));
    assert_int_equal(byte, 'j');
    OK(cuMemFree(address));
    OK(cuMemFree(small));
}

static void test_what_cannot_be_exported(void **state)
{
    CUmemGenericAllocationHandle chunk = create_chunk(2 * MIB);
    CUdeviceptr address = reserve(2 * MIB), pooled = 0;
    CUipcMemHandle handle;

    OK(cuMemMap(address, 2 * MIB, 0, chunk, 0));
    allow(address, 2 * MIB);
    FAILS(cuIpcGetMemHandle(&handle, address), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuIpcGetMemHandle(&handle, 4096), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocAsync(&pooled, 2 * MIB, NULL));
    FAILS(cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(pooled, NULL));
    OK(cuMemUnmap(address, 2 * MIB));
    OK(cuMemRelease(chunk));
    OK(cuMemAddressFree(address, 2 * MIB));
    memset(&handle, 1, sizeof(handle));
    FAILS(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
          CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_elsewhere),
        cmocka_unit_test(test_what_cannot_be_exported),
    };

    if (pipe(to_child) != 0) {
        return 1;
    }
    child = fork();
    if (child == 0) {
        _exit(opener());
    }
    return cmocka_run_group_tests(tests, use_device, NULL);
}
