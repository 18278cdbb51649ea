/* Host memory through the backend: where its chunks are made, what is probed, page-locked memory;
 * and what the backend asks of a device. */
#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "driver/host_verdict.h"

enum { G = FAKE_DRIVER_GRANULE, PRIMARY = FAKE_DRIVER_CONTEXTS - 1, NODE = 5, VERSION = 13010 };

static char folder[] = "/tmp/spillway-test-XXXXXX";
static struct spw_vm *vm;
static struct spw_backend *backend;

static void start(void)
{
    fake_driver_reset();
    fake_driver.pci[0] = 0x1;
    fake_driver.pci[1] = 0x2a;
    fake_driver.pci[2] = 0x3;
    fake_driver.version = VERSION;
    assert_int_equal(spw_backend_create(&fake_driver.driver, 0, &backend), SPW_OK);
    vm = spw_backend_vm(backend);
    spw_backend_note_context(backend, fake_driver_context(0), false);
}

static void finish(void)
{
    fake_driver_set_current(NULL);
    spw_backend_destroy(backend, /* release */ true);
    assert_int_equal(fake_driver.violations, 0);
    assert_int_equal(fake_driver.reserved, 0);
    assert_int_equal(fake_driver_chunk_count(), 0);
    assert_int_equal(fake_driver_mapped_count(), 0);
    assert_int_equal(fake_driver.pinned, 0);
    assert_int_equal(fake_driver.primary_retained, 0);
}

/* An earlier process found that chunks can be made at a node of the host, or nowhere. */
static void found_before(const char *device, bool works)
{
    const CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = NODE};
    char key[SPW_VERDICT_KEY];

    spw_driver_host_verdict_key(device, VERSION, key);
    spw_driver_host_verdict_write(/* simulated */ false, key, works, place);
}

static void start_with_host(void)
{
    found_before("1:2a:3", true);
    start();
    vm->ops->seek_host(vm);
}

static uint64_t calls(enum spw_own_call call)
{
    return fake_driver.calls[call];
}

/* ---- the place of chunks ---- */

/* It is asked for once, and is that of this very device and driver. */
static void test_place(void **state)
{
    uint64_t chunk, before;

    start_with_host();
    assert_int_equal(spw_backend_host_place(backend).type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
    assert_int_equal(spw_backend_host_place(backend).id, NODE);
    before = calls(SPW_CALL_cuDeviceGetAttribute);
    vm->ops->seek_host(vm);
    assert_int_equal(calls(SPW_CALL_cuDeviceGetAttribute), before);
    assert_int_equal(vm->ops->create(vm, SPW_TIER_HOST, G, &chunk), SPW_OK);
    assert_int_equal(fake_driver.props[chunk - 1].location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
    assert_int_equal(fake_driver.props[chunk - 1].location.id, NODE);
    assert_int_equal(fake_driver.props[chunk - 1].type, CU_MEM_ALLOCATION_TYPE_PINNED);
    assert_int_equal(fake_driver.props[chunk - 1].requestedHandleTypes, 0);
    assert_int_equal(vm->ops->release(vm, chunk), SPW_OK);
    assert_int_equal(vm->ops->create(vm, SPW_TIER_DEVICE, G, &chunk), SPW_OK);
    assert_int_equal(fake_driver.props[chunk - 1].location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(fake_driver.props[chunk - 1].location.id, 0);
    assert_int_equal(vm->ops->release(vm, chunk), SPW_OK);
    finish();
}

static void test_no_place(void **state)
{
    bool moves = true;

    found_before("1:2a:3", false);
    found_before("1:2a:4", true);
    start();
    vm->ops->seek_host(vm);
    assert_int_equal(vm->ops->probe_host(vm, &moves), SPW_E_UNSUPPORTED);
    assert_int_equal(calls(SPW_CALL_cuMemAddressReserve), 1); /* when the backend was made */
    finish();
}

static void test_exportable_chunks(void **state)
{
    uint64_t chunk;

    start();
    assert_int_equal(vm->ops->create_exportable(vm, G, &chunk), SPW_OK);
    assert_int_equal(fake_driver.props[chunk - 1].requestedHandleTypes,
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    assert_int_equal(fake_driver.props[chunk - 1].location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(vm->ops->release(vm, chunk), SPW_OK);
    finish();
}

/* ---- probing ---- */

static void test_probe(void **state)
{
    bool moves = false;

    start_with_host();
    assert_int_equal(vm->ops->probe_host(vm, &moves), SPW_OK);
    assert_true(moves);
    assert_int_equal(fake_driver.copies[0].to, FAKE_DRIVER_BASE + 2 * G - (1 << 16));
    assert_int_equal(fake_driver.copies[0].from, FAKE_DRIVER_BASE + G - (1 << 16));
    fake_driver.forgets = true;
    memset(fake_driver.content, 0, 2 * G);
    assert_int_equal(vm->ops->probe_host(vm, &moves), SPW_E_UNSUPPORTED);
    assert_false(moves);
    finish();
}

/* During a capture nothing can be probed. */
static void test_probe_in_a_capture(void **state)
{
    bool moves;

    start_with_host();
    fake_driver.driver.captures_open = 1;
    assert_int_equal(vm->ops->probe_host(vm, &moves), SPW_E_AGAIN);
    fake_driver.driver.captures_open = 0;
    assert_int_equal(vm->ops->probe_host(vm, &moves), SPW_OK);
    finish();
}

/* Memory does not move where fences of the device are deferred. */
static void test_probe_with_deferred_fences(void **state)
{
    bool moves = true;

    start_with_host();
    fake_driver.driver.cuCtxRecordEvent = NULL;
    assert_int_equal(vm->ops->probe_host(vm, &moves), SPW_OK);
    assert_false(moves);
    fake_driver.driver.cuCtxRecordEvent = NULL;
    finish();
    start_with_host();
    fake_driver_fail(SPW_CALL_cuCtxRecordEvent, 0, 1, CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(vm->ops->probe_host(vm, &moves), SPW_OK);
    assert_false(moves);
    finish();
}

/* Chunks of the host must be made of granules that fit into those of the device. */
static void test_granules_of_the_host(void **state)
{
    static const struct {
        size_t granule;
        enum spw_err err;
    } cases[] = {{G, SPW_OK}, {G / 2, SPW_OK}, {2 * G, SPW_E_UNSUPPORTED}, {3, SPW_E_UNSUPPORTED}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool moves;

        start_with_host();
        fake_driver.granule = cases[i].granule;
        assert_int_equal(vm->ops->probe_host(vm, &moves), cases[i].err);
        finish();
    }
    start_with_host();
    fake_driver.no_granule = true;
    assert_int_equal(vm->ops->probe_host(vm, &(bool){false}), SPW_E_UNSUPPORTED);
    finish();
}

/* Nothing is left, whichever call fails. */
static void test_faults_while_probing(void **state)
{
    static const enum spw_own_call each[] = {SPW_CALL_cuMemGetAllocationGranularity,
                                             SPW_CALL_cuMemAddressReserve,
                                             SPW_CALL_cuMemCreate,
                                             SPW_CALL_cuMemMap,
                                             SPW_CALL_cuMemSetAccess,
                                             SPW_CALL_cuMemsetD32Async,
                                             SPW_CALL_cuMemcpyAsync};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        bool moves = true;

        start_with_host();
        fake_driver_fail(each[i], 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(vm->ops->probe_host(vm, &moves),
                         i == 0 ? SPW_E_UNSUPPORTED
                                : spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        assert_int_equal(fake_driver.fail_count, 0);
        finish();
    }
}

/* What the device may still use stays mapped and reserved. */
static void test_busy_probe(void **state)
{
    bool moves;

    start_with_host();
    fake_driver_fail(SPW_CALL_cuStreamSynchronize, 0, 2, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_not_equal(vm->ops->probe_host(vm, &moves), SPW_OK);
    assert_int_equal(fake_driver.reserved, 1);
    assert_int_equal(fake_driver_mapped_count(), 1);
    assert_int_equal(fake_driver_chunk_count(), 0);
    fake_driver.reserved = 0;
    memset(fake_driver.mapped, 0, sizeof(fake_driver.mapped));
    finish();
}

/* ---- copies ---- */

static void test_copies(void **state)
{
    const struct spw_vm_copy copies[] = {
        {.to = FAKE_DRIVER_BASE + G, .from = FAKE_DRIVER_BASE, .bytes = G}};
    void *to_host = NULL, *to_device = NULL;
    uint64_t hash = 4711, other = 4711;

    start();
    fake_driver.content[0] = 1;
    fake_driver.content[G] = 2;
    assert_int_equal(vm->ops->copy(vm, SPW_TIER_HOST, copies, 1, false, &to_host), SPW_OK);
    assert_int_equal(fake_driver.content[G], 1);
    assert_int_equal(vm->ops->copy(vm, SPW_TIER_DEVICE, copies, 1, false, &to_device), SPW_OK);
    assert_ptr_not_equal(fake_driver.copies[0].stream, fake_driver.copies[1].stream);
    vm->ops->drop(vm, to_host);
    vm->ops->drop(vm, to_device);
    fake_driver.driver.captures_open = 1;
    assert_int_equal(vm->ops->copy(vm, SPW_TIER_HOST, copies, 1, false, &to_host), SPW_E_AGAIN);
    assert_null(to_host);
    fake_driver.driver.captures_open = 0;
    assert_int_equal(vm->ops->hash(vm, FAKE_DRIVER_BASE, G, &hash), SPW_OK);
    assert_int_equal(vm->ops->hash(vm, FAKE_DRIVER_BASE + G, G, &other), SPW_OK);
    assert_int_equal(hash, other);
    assert_int_not_equal(hash, 0);
    spw_backend_forget_context(backend, fake_driver_context(0)); /* with both streams */
    memset(fake_driver.streams, 0, sizeof(fake_driver.streams));
    fake_driver_destroy(0);
    finish();
}

/* When all contexts are gone, the next copy needs a stream in a new one. */
static void test_copies_in_a_new_context(void **state)
{
    const struct spw_vm_copy copies[] = {
        {.to = FAKE_DRIVER_BASE + G, .from = FAKE_DRIVER_BASE, .bytes = G}};
    void *fence = NULL;

    start();
    for (size_t i = 0; i < 2; i++) {
        const enum spw_tier tiers[] = {SPW_TIER_HOST, SPW_TIER_DEVICE};

        for (size_t tier = 0; tier < 2; tier++) {
            assert_int_equal(vm->ops->copy(vm, tiers[tier], copies, 1, false, &fence), SPW_OK);
            vm->ops->drop(vm, fence);
        }
        assert_ptr_equal(fake_driver.streams[0], fake_driver_context(i));
        assert_ptr_equal(fake_driver.streams[1], fake_driver_context(i));
        spw_backend_forget_contexts(backend);
        memset(fake_driver.streams, 0, sizeof(fake_driver.streams));
        fake_driver_destroy(i);
        spw_backend_note_context(backend, fake_driver_context(1), false);
    }
    finish();
}

/* Content that is swapped is read from and written to the device's memory. */
static void test_content(void **state)
{
    unsigned char bytes[512];

    start();
    memset(bytes, 0x5a, sizeof(bytes));
    assert_int_equal(vm->ops->write(vm, FAKE_DRIVER_BASE + G, bytes, sizeof(bytes)), SPW_OK);
    assert_memory_equal(fake_driver.content + G, bytes, sizeof(bytes));
    fake_driver.content[G] = 3;
    assert_int_equal(vm->ops->read(vm, bytes, FAKE_DRIVER_BASE + G, sizeof(bytes)), SPW_OK);
    assert_memory_equal(fake_driver.content + G, bytes, sizeof(bytes));
    assert_int_equal(bytes[0], 3);
    assert_int_equal(calls(SPW_CALL_cuStreamCreate), 2); /* one for each direction */
    finish();
}

static unsigned long long dropped;

static unsigned long long payload(unsigned long long *ret_dropped)
{
    *ret_dropped = dropped;
    return 1;
}

/* A simulated GPU that has dropped content proves nothing. */
static void test_dropped_content(void **state)
{
    uint64_t hash = 4711;

    start();
    fake_driver.content[0] = 1;
    fake_driver.driver.simulated_payload = payload;
    dropped = 0;
    assert_int_equal(vm->ops->hash(vm, FAKE_DRIVER_BASE, G, &hash), SPW_OK);
    assert_int_not_equal(hash, 0);
    dropped = 1;
    assert_int_equal(vm->ops->hash(vm, FAKE_DRIVER_BASE, G, &hash), SPW_OK);
    assert_int_equal(hash, 0);
    finish();
}

/* ---- page-locked memory ---- */

/* It is allocated in the primary context if that is active, else where it is asked for, else in the
 * device's oldest context. */
static void test_home_of_pinned_memory(void **state)
{
    static const struct {
        bool active, exists;
        int asking, home;
    } cases[] = {
        {true, true, 1, PRIMARY}, {false, true, 1, 1}, {false, true, -1, 0}, {true, false, 1, 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CUcontext asking = cases[i].asking < 0 ? NULL : fake_driver_context(1);
        struct spw_vm_pinned pinned;

        start();
        fake_driver.primary_active = cases[i].active;
        if (!cases[i].exists) {
            fake_driver.driver.cuDevicePrimaryCtxGetState = NULL;
        }
        assert_int_equal(vm->ops->pin(vm, asking, 4096, &pinned), SPW_OK);
        assert_ptr_equal(fake_driver.pinned_in, fake_driver_context((size_t)cases[i].home));
        assert_ptr_equal(pinned.context, fake_driver.pinned_in);
        assert_int_equal(pinned.lasting, cases[i].home == PRIMARY);
        assert_int_equal(pinned.address, pinned.memory + FAKE_DRIVER_PINNED);
        assert_int_equal(fake_driver.pinned_flags,
                         CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
        assert_null(fake_driver_current());
        fake_driver_complete(NULL);
        assert_int_equal(vm->ops->unpin(vm, pinned.memory), SPW_E_AGAIN); /* not idle */
        assert_int_equal(fake_driver.pinned, 1);
        spw_backend_forget_contexts(backend);
        fake_driver_set_current(fake_driver_context(0));
        assert_int_equal(vm->ops->unpin(vm, pinned.memory), SPW_OK);
        finish();
    }
}

/* Nothing stays allocated where it cannot be used. */
static void test_faults_of_pinned_memory(void **state)
{
    static const enum spw_own_call each[] = {SPW_CALL_cuMemHostAlloc,
                                             SPW_CALL_cuMemHostGetDevicePointer_v2,
                                             SPW_CALL_cuCtxPushCurrent_v2};
    struct spw_vm_pinned pinned = {.memory = 4711};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        start();
        fake_driver_fail(each[i], 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(vm->ops->pin(vm, fake_driver_context(1), 4096, &pinned),
                         spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        assert_int_equal(pinned.memory, 4711);
        assert_null(fake_driver_current());
        finish();
    }
    start();
    fake_driver.driver.cuMemHostGetDevicePointer_v2 = NULL;
    assert_int_equal(vm->ops->pin(vm, fake_driver_context(1), 4096, &pinned),
                     spw_err_from_driver(CUDA_ERROR_NOT_SUPPORTED));
    finish();
    for (int call = 0; call < 2; call++) {
        start(); /* a primary context that cannot be asked for is none */
        fake_driver.primary_active = true;
        fake_driver_fail(call == 0 ? SPW_CALL_cuDevicePrimaryCtxGetState
                                   : SPW_CALL_cuDevicePrimaryCtxRetain,
                         0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(vm->ops->pin(vm, fake_driver_context(1), 4096, &pinned), SPW_OK);
        assert_false(pinned.lasting);
        assert_ptr_equal(pinned.context, fake_driver_context(1));
        spw_backend_forget_contexts(backend);
        fake_driver_set_current(fake_driver_context(0));
        fake_driver_fail(SPW_CALL_cuMemFreeHost, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(vm->ops->unpin(vm, pinned.memory),
                         spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        assert_int_equal(vm->ops->unpin(vm, pinned.memory), SPW_OK);
        finish();
    }
}

static CUresult CUDAAPI find_complete(CUevent unused)
{
    return CUDA_SUCCESS;
}

/* In a thread without a context, one of spillway's is current only meanwhile. */
static void test_unpin_without_a_context(void **state)
{
    struct spw_vm_pinned pinned;

    start();
    assert_int_equal(vm->ops->pin(vm, NULL, 4096, &pinned), SPW_OK);
    assert_null(fake_driver_current());
    fake_driver.driver.cuEventQuery = find_complete;
    assert_int_equal(vm->ops->unpin(vm, pinned.memory), SPW_OK);
    assert_int_equal(fake_driver.pinned, 0);
    assert_null(fake_driver_current());
    finish();
}

/* Not during a capture, nor without a context. */
static void test_unpin(void **state)
{
    struct spw_vm_pinned pinned;

    start();
    assert_int_equal(vm->ops->pin(vm, NULL, 4096, &pinned), SPW_OK);
    fake_driver.driver.captures_open = 1;
    assert_int_equal(vm->ops->unpin(vm, pinned.memory), SPW_E_AGAIN);
    fake_driver.driver.captures_open = 0;
    spw_backend_forget_contexts(backend);
    fake_driver_fail(SPW_CALL_cuCtxGetCurrent, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(vm->ops->unpin(vm, pinned.memory),
                     spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
    assert_int_equal(fake_driver.pinned, 1);
    fake_driver_set_current(fake_driver_context(0));
    assert_int_equal(vm->ops->unpin(vm, pinned.memory), SPW_OK);
    finish();
}

static void test_probe_pinned(void **state)
{
    start();
    assert_int_equal(vm->ops->probe_pinned(vm, FAKE_DRIVER_BASE, G), SPW_OK);
    assert_int_equal(fake_driver.copies[0].to, FAKE_DRIVER_BASE + G - (1 << 16));
    assert_int_equal(fake_driver.copies[0].from, FAKE_DRIVER_BASE + G / 2 - (1 << 16));
    fake_driver.forgets = true;
    memset(fake_driver.content, 0, G);
    assert_int_equal(vm->ops->probe_pinned(vm, FAKE_DRIVER_BASE, G), SPW_E_UNSUPPORTED);
    finish();
}

/* ---- the device ---- */

static void refuse(enum spw_err expected)
{
    struct spw_backend *none = NULL;

    assert_int_equal(spw_backend_create(&fake_driver.driver, 0, &none), expected);
    assert_null(none);
    assert_int_equal(fake_driver.violations, 0);
}

/* Without virtual memory, events, or granules of a sensible size there is no pool. */
static void test_devices_that_cannot(void **state)
{
    static const size_t odd[] = {3 << 20, (1 << 20) + 1};

    fake_driver_reset();
    fake_driver.supported = 0;
    refuse(SPW_E_UNSUPPORTED);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        fake_driver_reset();
        fake_driver.granule = odd[i];
        refuse(SPW_E_UNSUPPORTED);
    }
    fake_driver_reset();
    fake_driver.no_granule = true;
    refuse(SPW_E_UNSUPPORTED);
    fake_driver_reset();
    fake_driver.driver.cuMemAddressReserve = NULL;
    refuse(SPW_E_UNSUPPORTED);
    fake_driver_reset();
    fake_driver.driver.cuMemGetAllocationGranularity = NULL;
    refuse(SPW_E_UNSUPPORTED);
    fake_driver_reset();
    fake_driver.driver.cuEventRecord = NULL;
    refuse(SPW_E_UNSUPPORTED);
    fake_driver_reset();
    fake_driver_fail(SPW_CALL_cuDeviceGet, 0, 1, CUDA_ERROR_INVALID_DEVICE);
    refuse(spw_err_from_driver(CUDA_ERROR_INVALID_DEVICE));
    start();
    assert_int_equal(spw_backend_granule(backend), G);
    finish();
    spw_backend_destroy(NULL, true);
}

static int make_folder(void **state)
{
    return mkdtemp(folder) == NULL || setenv("XDG_CACHE_HOME", folder, 1) != 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_exportable_chunks),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_in_a_capture),
        cmocka_unit_test(test_probe_with_deferred_fences),
        cmocka_unit_test(test_granules_of_the_host),
        cmocka_unit_test(test_faults_while_probing),
        cmocka_unit_test(test_busy_probe),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_dropped_content),
        cmocka_unit_test(test_home_of_pinned_memory),
        cmocka_unit_test(test_faults_of_pinned_memory),
        cmocka_unit_test(test_unpin_without_a_context),
        cmocka_unit_test(test_unpin),
        cmocka_unit_test(test_probe_pinned),
        cmocka_unit_test(test_devices_that_cannot),
        cmocka_unit_test(test_copies_in_a_new_context),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
