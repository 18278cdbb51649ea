/* The copier: how copies are cut, what they wait for, what is hashed and probed, and what it does
 * when the driver refuses. */
#include "backend/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fake_driver.h"

enum { MIB = 1 << 20, PIECE = 8 * MIB, PROBE = 1 << 16 };

static struct spw_backend_fences fences;
static struct spw_backend_copier copier;

static void open(size_t contexts)
{
    spw_backend_fences_init(&fences, fake_driver_reset(), 0);
    copier = (struct spw_backend_copier){.fences = &fences};
    for (size_t i = 0; i < contexts; i++) {
        spw_backend_fences_note_context(&fences, fake_driver_context(i), /* peer */ false);
    }
}

static void close(void)
{
    assert_null(fake_driver_current());
    spw_backend_copier_fini(&copier, /* destroy */ true);
    for (size_t i = 0; i < FAKE_DRIVER_STREAMS; i++) {
        assert_null(fake_driver.streams[i]);
    }
    spw_backend_fences_fini(&fences, /* destroy_events */ true);
    assert_int_equal(fake_driver_event_count(), 0);
    assert_int_equal(fake_driver.violations, 0);
}

static uint64_t at(uint64_t bytes)
{
    return FAKE_DRIVER_BASE + bytes;
}

static enum spw_err copy(uint64_t to, uint64_t from, uint64_t bytes, bool after_all,
                         struct spw_backend_fence **ret_fence)
{
    const struct spw_vm_copy copies[] = {{.to = to, .from = from, .bytes = bytes}};

    *ret_fence = (void *)&fences; /* to be overwritten in any case */
    return spw_backend_copier_copy(&copier, copies, 1, after_all, ret_fence);
}

static uint64_t calls(enum spw_own_call call)
{
    return fake_driver.calls[call];
}

/* ---- copies ---- */

/* A copy is cut into pieces, which are enqueued in order on a stream of its own. */
static void test_pieces(void **state)
{
    const struct spw_vm_copy copies[] = {
        {.to = at(64 * MIB), .from = at(0), .bytes = 2 * PIECE + MIB},
        {.to = at(100 * MIB), .from = at(32 * MIB), .bytes = PIECE},
    };
    static const uint64_t pieces[][3] = {{64, 0, 8}, {72, 8, 8}, {80, 16, 1}, {100, 32, 8}};
    struct spw_backend_fence *fence = NULL;

    open(1);
    assert_int_equal(spw_backend_copier_copy(&copier, copies, 2, false, &fence), SPW_OK);
    assert_int_equal(fake_driver.copy_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(fake_driver.copies[i].to, at(pieces[i][0] * MIB));
        assert_int_equal(fake_driver.copies[i].from, at(pieces[i][1] * MIB));
        assert_int_equal(fake_driver.copies[i].bytes, pieces[i][2] * MIB);
        assert_ptr_equal(fake_driver.copies[i].stream, copier.handle);
    }
    assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_E_AGAIN);
    assert_ptr_equal(fake_driver.events[0].recorded_on, copier.handle);
    assert_int_equal(fake_driver.waited_count, 0);
    fake_driver_complete(NULL);
    assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* Behind everything: the stream waits for the events of all contexts first. */
static void test_after_all(void **state)
{
    struct spw_backend_fence *fence;

    open(2);
    assert_int_equal(copy(at(MIB), at(0), MIB, /* after_all */ true, &fence), SPW_OK);
    assert_int_equal(fake_driver.waited_count, 2);
    assert_ptr_equal(fake_driver.waiting, copier.handle);
    spw_backend_fence_drop(&fences, fence);
    assert_int_equal(copy(at(MIB), at(0), MIB, true, &fence), SPW_OK);
    assert_int_equal(fake_driver_event_count(), 2); /* those of the first fence are reused */
    spw_backend_fence_drop(&fences, fence);
    fake_driver.driver.captures_open = 1;
    assert_int_equal(copy(at(MIB), at(0), MIB, true, &fence), SPW_E_AGAIN);
    assert_null(fence);
    assert_int_equal(fake_driver.copy_count, 2);
    fake_driver_fail(SPW_CALL_cuStreamWaitEvent, 0, 1, CUDA_ERROR_UNKNOWN);
    fake_driver.driver.captures_open = 0;
    assert_int_not_equal(copy(at(MIB), at(0), MIB, true, &fence), SPW_OK);
    assert_int_equal(fake_driver.copy_count, 2);
    close();
}

/* When a piece is refused, the fence tells of those before. */
static void test_refused_pieces(void **state)
{
    const struct spw_vm_copy copies[] = {
        {.to = at(64 * MIB), .from = at(0), .bytes = 2 * PIECE},
        {.to = at(100 * MIB), .from = at(32 * MIB), .bytes = PIECE},
    };

    for (size_t after = 0; after < 3; after++) {
        struct spw_backend_fence *fence = (void *)&fences;

        open(1);
        fake_driver_fail(SPW_CALL_cuMemcpyAsync, after, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(spw_backend_copier_copy(&copier, copies, 2, false, &fence),
                         spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        assert_int_equal(fake_driver.copy_count, after);
        assert_int_equal(fence != NULL, after > 0);
        if (fence != NULL) {
            spw_backend_fence_drop(&fences, fence);
        }
        close();
    }
}

static void test_nothing_to_copy(void **state)
{
    struct spw_backend_fence *fence;

    open(1);
    assert_int_equal(copy(at(MIB), at(0), 0, false, &fence), SPW_E_INVAL);
    assert_null(fence);
    close();
}

/* Where no event can be recorded behind the copies, the fence watches the stream. Nothing waits. */
static void test_no_event(void **state)
{
    static const enum spw_own_call each[] = {SPW_CALL_cuEventRecord, SPW_CALL_cuEventCreate};
    const struct spw_stream other = {
        .id = 7, .handle = (void *)0x100, .context = fake_driver_context(0)};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        struct spw_backend_fence *fence;

        open(1);
        fake_driver_fail(each[i], 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
        assert_int_equal(calls(SPW_CALL_cuStreamSynchronize), 0);
        fake_driver.busy = true;
        assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_E_AGAIN);
        assert_int_equal(spw_backend_fence_wait_soon(&fences, fence, 1000), SPW_E_AGAIN);
        assert_int_equal(spw_backend_fence_wait_stream(&fences, &other, fence), SPW_E_AGAIN);
        fake_driver.busy = false;
        assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_OK);
        fake_driver_fail(SPW_CALL_cuStreamQuery, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(spw_backend_fence_query(&fences, fence),
                         spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        spw_backend_fence_drop(&fences, fence);
        close();
    }
}

/* The work of a context that goes is complete; a fence that was dropped is an ordinary one again.
 */
static void test_watched_context_goes(void **state)
{
    struct spw_backend_fence *fence, *again;

    open(2);
    fake_driver_fail(SPW_CALL_cuEventRecord, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    fake_driver.busy = true;
    spw_backend_fences_forget_context(&fences, fake_driver_context(1));
    assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_E_AGAIN);
    spw_backend_copier_forget_context(&copier, fake_driver_context(0));
    spw_backend_fences_forget_context(&fences, fake_driver_context(0));
    fake_driver.streams[0] = NULL;
    fake_driver_destroy(0);
    assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);

    spw_backend_fences_note_context(&fences, fake_driver_context(2), /* peer */ false);
    fake_driver_fail(SPW_CALL_cuEventRecord, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    assert_int_equal(
        spw_backend_fence_record(&fences, &(struct spw_stream){.id = SPW_STREAM_ALL}, &again),
        SPW_OK);
    assert_ptr_equal(again, fence);
    fake_driver_complete(NULL);
    assert_int_equal(spw_backend_fence_query(&fences, again), SPW_OK);
    spw_backend_fence_drop(&fences, again);
    close();
}

/* ---- the stream ---- */

/* It is created once, in the oldest context of the device, or in the current one if none is known.
 */
static void test_stream(void **state)
{
    struct spw_backend_fence *fence;

    open(2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
        spw_backend_fence_drop(&fences, fence);
    }
    assert_int_equal(calls(SPW_CALL_cuStreamCreate), 1);
    assert_ptr_equal(fake_driver.streams[0], fake_driver_context(0));
    assert_ptr_equal(copier.context, fake_driver_context(0));
    close();

    open(0);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_E_UNSUPPORTED);
    assert_null(fence);
    fake_driver_set_current(fake_driver_context(3));
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    assert_ptr_equal(fake_driver.streams[0], fake_driver_context(3));
    spw_backend_fence_drop(&fences, fence);
    fake_driver_set_current(NULL);
    close();
}

/* No stream is made in a context that is about to end. */
static void test_ending_context(void **state)
{
    struct spw_backend_fence *fence;

    open(2);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    assert_ptr_equal(copier.context, fake_driver_context(0));
    spw_backend_fences_end_context(&fences, fake_driver_context(0));
    spw_backend_copier_forget_context(&copier, fake_driver_context(0));
    assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_E_AGAIN); /* it still counts */
    fake_driver_complete(fake_driver_context(0));
    assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    assert_ptr_equal(copier.context, fake_driver_context(1));
    spw_backend_fence_drop(&fences, fence);
    spw_backend_fences_end_context(&fences, fake_driver_context(1));
    spw_backend_fences_end_context(&fences, fake_driver_context(3)); /* nobody knows it */
    assert_null(spw_backend_fences_own_context(&fences));
    fake_driver.streams[0] = NULL;
    close();
}

static void test_stream_is_refused(void **state)
{
    static const enum spw_own_call each[] = {SPW_CALL_cuStreamCreate, SPW_CALL_cuCtxPushCurrent_v2,
                                             SPW_CALL_cuCtxGetCurrent};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        struct spw_backend_fence *fence;

        open(1);
        fake_driver_fail(each[i], 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence),
                         spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        assert_null(copier.handle);
        assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
        spw_backend_fence_drop(&fences, fence);
        close();
    }
}

/* The stream goes with its context only, and is made anew in another one. */
static void test_context_goes(void **state)
{
    struct spw_backend_fence *fence;

    open(2);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    spw_backend_copier_forget_context(&copier, fake_driver_context(1));
    assert_non_null(copier.handle);
    spw_backend_copier_forget_context(&copier, fake_driver_context(0));
    assert_null(copier.handle);
    assert_null(copier.context);
    spw_backend_fences_forget_context(&fences, fake_driver_context(0));
    fake_driver.streams[0] = NULL;
    fake_driver_destroy(0);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    assert_ptr_equal(fake_driver.streams[0], fake_driver_context(1));
    spw_backend_fence_drop(&fences, fence);
    spw_backend_copier_fini(&copier, /* destroy */ false);
    assert_null(copier.handle);
    assert_non_null(fake_driver.streams[0]);
    fake_driver.streams[0] = NULL;
    close();
}

/* ---- hashes ---- */

static uint64_t hash_of(uint64_t address, uint64_t bytes)
{
    uint64_t hash = 4711;

    assert_int_equal(spw_backend_copier_hash(&copier, address, bytes, &hash), SPW_OK);
    return hash;
}

/* The hash depends on every byte and on the order, not on the place. */
static void test_hash(void **state)
{
    enum { LONG = 2 * MIB + 4096 };
    static const size_t places[] = {0, 7, 8, MIB - 1, MIB, LONG - 1};
    uint64_t same, other;

    open(1);
    for (size_t i = 0; i < LONG; i++) {
        fake_driver.content[i] = (unsigned char)(i * 31 + i / 256);
    }
    memcpy(fake_driver.content + 8 * MIB, fake_driver.content, LONG);
    same = hash_of(at(0), LONG);
    assert_int_not_equal(same, 4711);
    assert_int_equal(hash_of(at(8 * MIB), LONG), same);
    assert_int_not_equal(hash_of(at(0), LONG - 8), same);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        fake_driver.content[places[i]] ^= 1;
        other = hash_of(at(0), LONG);
        assert_int_not_equal(other, same);
        fake_driver.content[places[i]] ^= 1;
    }
    fake_driver.content[LONG] ^= 1; /* behind the end */
    assert_int_equal(hash_of(at(0), LONG), same);
    memcpy(fake_driver.content, fake_driver.content + 8 * MIB + 8, 8);
    memcpy(fake_driver.content + 8, fake_driver.content + 8 * MIB, 8);
    assert_int_not_equal(hash_of(at(0), LONG), same);
    close();
}

static void test_hash_is_refused(void **state)
{
    static const enum spw_own_call each[] = {SPW_CALL_cuMemcpyDtoHAsync_v2,
                                             SPW_CALL_cuStreamSynchronize, SPW_CALL_cuStreamCreate};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        for (size_t after = 0; after < (each[i] == SPW_CALL_cuStreamCreate ? 1 : 2); after++) {
            uint64_t hash = 4711;

            open(1);
            fake_driver_fail(each[i], after, 1, CUDA_ERROR_LAUNCH_FAILED);
            assert_int_equal(spw_backend_copier_hash(&copier, at(0), 2 * MIB, &hash),
                             spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
            assert_int_equal(hash, 4711);
            close();
        }
    }
}

/* ---- content from and to the program ---- */

/* What is written is what is read back, on the copier's own stream, and is done on return. */
static void test_read_and_write(void **state)
{
    unsigned char out[4096], in[4096];

    open(1);
    memset(fake_driver.content, 0x22, 2 * MIB);
    for (size_t i = 0; i < sizeof(out); i++) {
        out[i] = (unsigned char)(i * 7 + i / 256);
    }
    assert_int_equal(spw_backend_copier_write(&copier, at(MIB), out, sizeof(out)), SPW_OK);
    assert_int_equal(calls(SPW_CALL_cuStreamSynchronize), 1);
    assert_memory_equal(fake_driver.content + MIB, out, sizeof(out));
    assert_int_equal(fake_driver.content[MIB - 1], 0x22);
    assert_int_equal(fake_driver.content[MIB + sizeof(out)], 0x22);
    assert_int_equal(spw_backend_copier_read(&copier, in, at(MIB), sizeof(in)), SPW_OK);
    assert_int_equal(calls(SPW_CALL_cuStreamSynchronize), 2);
    assert_memory_equal(in, out, sizeof(out));
    close();
}

/* Whichever call is refused, the error is told, and the context is left. */
static void test_read_and_write_are_refused(void **state)
{
    static const struct {
        enum spw_own_call call;
        bool writes, reads;
    } each[] = {
        {SPW_CALL_cuStreamCreate, true, true},        {SPW_CALL_cuCtxPushCurrent_v2, true, true},
        {SPW_CALL_cuCtxGetCurrent, true, true},       {SPW_CALL_cuStreamSynchronize, true, true},
        {SPW_CALL_cuMemcpyHtoDAsync_v2, true, false}, {SPW_CALL_cuMemcpyDtoHAsync_v2, false, true}};
    const enum spw_err err = spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED);

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        unsigned char bytes[64] = {1};

        open(1);
        fake_driver_fail(each[i].call, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(spw_backend_copier_write(&copier, at(0), bytes, sizeof(bytes)),
                         each[i].writes ? err : SPW_OK);
        close();
        open(1);
        fake_driver_fail(each[i].call, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(spw_backend_copier_read(&copier, bytes, at(0), sizeof(bytes)),
                         each[i].reads ? err : SPW_OK);
        close();
    }
    open(0); /* no context, no stream */
    assert_int_equal(spw_backend_copier_write(&copier, at(0), "", 1), SPW_E_UNSUPPORTED);
    close();
}

/* ---- probes ---- */

/* Only the ends of the ranges are written, and a copy that does nothing is noticed. */
static void test_probe(void **state)
{
    enum { RANGE = 2 * MIB };
    bool busy = true;

    open(1);
    memset(fake_driver.content, 0x11, 4 * MIB);
    assert_int_equal(spw_backend_copier_probe(&copier, at(RANGE), at(0), RANGE, &busy), SPW_OK);
    assert_false(busy);
    for (size_t i = 0; i < 2 * RANGE; i += 4) {
        bool written = i % RANGE >= RANGE - PROBE;

        assert_int_equal(fake_driver.content[i] != 0x11, written);
    }
    memset(fake_driver.content, 0x11, 4 * MIB);
    assert_int_equal(spw_backend_copier_probe(&copier, at(RANGE), at(0), 4096, &busy), SPW_OK);
    assert_int_not_equal(fake_driver.content[0], 0x11);
    assert_int_equal(fake_driver.content[4096], 0x11);
    assert_int_not_equal(fake_driver.content[RANGE + 4095], 0x11);
    assert_int_equal(fake_driver.content[RANGE + 4096], 0x11);
    memset(fake_driver.content, 0x11, 4 * MIB);
    fake_driver.forgets = true;
    assert_int_equal(spw_backend_copier_probe(&copier, at(RANGE), at(0), RANGE, &busy),
                     SPW_E_UNSUPPORTED);
    assert_false(busy);
    close();
}

/* After a failure the memory may be in use only if the stream cannot be waited for. */
static void test_probe_is_refused(void **state)
{
    static const enum spw_own_call each[] = {
        SPW_CALL_cuMemsetD32Async,    SPW_CALL_cuMemcpyAsync,  SPW_CALL_cuMemcpyDtoHAsync_v2,
        SPW_CALL_cuStreamSynchronize, SPW_CALL_cuStreamCreate, SPW_CALL_cuCtxGetCurrent};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        for (size_t count = 1; count <= 2; count++) {
            bool busy = true;

            open(1);
            fake_driver_fail(each[i], 0, count, CUDA_ERROR_LAUNCH_FAILED);
            assert_int_equal(spw_backend_copier_probe(&copier, at(MIB), at(0), MIB, &busy),
                             spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
            assert_int_equal(busy, each[i] == SPW_CALL_cuStreamSynchronize && count == 2);
            close();
        }
    }
}

/* The stream exists, and its context cannot be entered. */
static void test_context_is_refused(void **state)
{
    const enum spw_err err = spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED);
    struct spw_backend_fence *fence;
    uint64_t hash = 4711;
    bool busy = true;

    open(1);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    fake_driver_fail(SPW_CALL_cuCtxGetCurrent, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(copy(at(MIB), at(0), MIB, false, &fence), err);
    assert_null(fence);
    assert_int_equal(fake_driver.copy_count, 1);
    fake_driver_fail(SPW_CALL_cuCtxGetCurrent, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(spw_backend_copier_hash(&copier, at(0), MIB, &hash), err);
    fake_driver_fail(SPW_CALL_cuCtxGetCurrent, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(spw_backend_copier_probe(&copier, at(MIB), at(0), MIB, &busy), err);
    assert_false(busy);
    fake_driver_fail(SPW_CALL_cuCtxGetCurrent, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(spw_backend_copier_write(&copier, at(0), &hash, sizeof(hash)), err);
    assert_int_equal(calls(SPW_CALL_cuMemcpyHtoDAsync_v2), 0);
    close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_after_all),
        cmocka_unit_test(test_refused_pieces),
        cmocka_unit_test(test_nothing_to_copy),
        cmocka_unit_test(test_no_event),
        cmocka_unit_test(test_watched_context_goes),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_ending_context),
        cmocka_unit_test(test_stream_is_refused),
        cmocka_unit_test(test_context_goes),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_hash_is_refused),
        cmocka_unit_test(test_read_and_write),
        cmocka_unit_test(test_read_and_write_are_refused),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_is_refused),
        cmocka_unit_test(test_context_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
