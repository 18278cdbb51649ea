/* Memory that is swapped out to a file and in again: content, amounts, room, and refusals. */
#include "migrate/host/swap.h"

#include "malloc_faults.h"
#include "nameless.h"
#include "pool_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEVICE = 16, HOST = 32, SHARED = 3 * GRANULE / 2, EACH = 3 * GRANULE };

/* In the place of the system's: writes are interrupted, then cut short, or write nothing for some
 * time. */
static int interrupted, short_writes, empty_writes;
static int writes_until_full = -1; /* then the disk is full */
static int odd_writes;             /* fail for want of alignment, past the page cache */

/* The disk: does it reserve room? */
static int reserve_error;
static int reservations;

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    reservations++;
    errno = reserve_error;
    return reserve_error != 0 ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static bool is_direct(int fd)
{
    return (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    if (interrupted > 0) {
        interrupted--;
        errno = EINTR;
        return -1;
    }
    if (odd_writes > 0 && is_direct(fd)) {
        odd_writes--;
        errno = EINVAL;
        return -1;
    }
    if (writes_until_full >= 0 && writes_until_full-- == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (empty_writes > 0) {
        empty_writes--;
        return 0;
    }
    if (short_writes > 0) {
        short_writes--;
        bytes--;
    }
    return syscall(SYS_pwrite64, fd, from, bytes, offset);
}

/* In memory: the tests write some GiB. */
static char folder[] = "/dev/shm/spillway-test-XXXXXX";

/* Two blocks of whole granules, two that share a granule, and one on the host. */
struct fixture {
    struct pool_fixture pool;
    struct spw_account accounts[SPW_ACCOUNTS];
    struct spw_swap swap;
    struct spw_swap_file file;
    uint64_t a, b, half, other_half, far;
};

static uint64_t count(const _Atomic uint64_t *counter)
{
    return spw_counter_get(counter);
}

static uint64_t alloc_placed(struct fixture *f, const struct spw_pool_placement *placement)
{
    const struct spw_request request = {.bytes = EACH, .stream = &stream_a, .placement = placement};
    struct spw_result result = {0};

    assert_int_equal(spw_pool_alloc(f->pool.pool, &request, &result), SPW_OK);
    return result.address;
}

static void open_pool(struct fixture *f)
{
    const struct spw_pool_placement on_host = {
        .on_host = true, .account = 1, .limit_bytes = UINT64_MAX};
    const struct spw_pool_placement plain = {.account = 2, .limit_bytes = UINT64_MAX};

    memset(f, 0, sizeof(*f));
    pool_open_as(&f->pool, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                     .arena_bytes = 256ull * GRANULE,
                                                     .limit_bytes = DEVICE * GRANULE,
                                                     .accounts = f->accounts});
    spw_pool_set_host_limit(f->pool.pool, (uint64_t)HOST * GRANULE);
    f->a = pool_alloc(&f->pool, EACH, &stream_a);
    f->b = alloc_placed(f, &plain);
    f->half = pool_alloc(&f->pool, SHARED, &stream_a);
    f->other_half = pool_alloc(&f->pool, SHARED, &stream_a);
    assert_int_equal(f->other_half, f->half + SHARED);
    f->far = alloc_placed(f, &on_host);
    fake_vm_write(&f->pool.vm, f->a, EACH, 100);
    fake_vm_write(&f->pool.vm, f->b, EACH, 200);
    fake_vm_write(&f->pool.vm, f->half, 2 * SHARED, 300);
    fake_vm_write(&f->pool.vm, f->far, EACH, 400);
}

static void open_fixture(struct fixture *f)
{
    open_pool(f);
    assert_int_equal(spw_migrate_swap_file_open(folder, &f->file), 0);
}

static void close_fixture(struct fixture *f)
{
    spw_migrate_swap_fini(&f->swap);
    spw_migrate_swap_file_close(&f->file);
    pool_close(&f->pool);
}

static struct spw_swap_result swap_out(struct fixture *f)
{
    uint64_t before = count(&f->pool.counters.swapped_bytes);
    struct spw_swap_result result = spw_migrate_swap_out(&f->swap, f->pool.pool, &f->file);

    pool_check(&f->pool);
    assert_int_equal(count(&f->pool.counters.swapped_bytes), before + result.bytes);
    return result;
}

static struct spw_swap_result swap_in(struct fixture *f, bool host)
{
    struct spw_swap_result result = spw_migrate_swap_in(&f->swap, f->pool.pool, &f->file, host);

    pool_check(&f->pool);
    return result;
}

static void expect_content(struct fixture *f)
{
    assert_int_equal(fake_vm_differs(&f->pool.vm, f->a, EACH, 100), 0);
    assert_int_equal(fake_vm_differs(&f->pool.vm, f->b, EACH, 200), 0);
    assert_int_equal(fake_vm_differs(&f->pool.vm, f->half, 2 * SHARED, 300), 0);
    assert_int_equal(fake_vm_differs(&f->pool.vm, f->far, EACH, 400), 0);
    assert_true(fake_vm_usable(&f->pool.vm, f->a, EACH));
    assert_true(fake_vm_usable(&f->pool.vm, f->b, EACH));
    assert_true(fake_vm_usable(&f->pool.vm, f->half, 2 * SHARED));
    assert_true(fake_vm_usable(&f->pool.vm, f->far, EACH));
}

static void fix(struct fixture *f, uint64_t block, bool fixed)
{
    const struct spw_block_attributes attributes = {.fix = fixed ? SPW_FIXED_SHARED : 0,
                                                    .unfix = fixed ? 0 : SPW_FIXED_SHARED};

    assert_int_equal(spw_pool_set_attributes(f->pool.pool, block, 1, &attributes), 1);
}

/* ---- both ways ---- */

static void test_out_and_in(void **state)
{
    struct spw_swap_result result;
    struct fixture f;
    uint64_t live;

    open_fixture(&f);
    live = count(&f.pool.counters.live_bytes);
    result = swap_out(&f);
    assert_int_equal(result.error, 0);
    assert_int_equal(result.bytes, 12 * GRANULE);
    assert_int_equal(f.file.end, result.bytes);
    assert_int_equal(f.pool.vm.chunks + f.pool.vm.host_chunks, 0);
    assert_int_equal(count(&f.pool.counters.committed_bytes), 0);
    assert_int_equal(count(&f.pool.counters.host_bytes), 0);
    assert_int_equal(count(&f.pool.counters.host_used_bytes), 0);
    assert_int_equal(count(&f.pool.counters.live_bytes), live);
    assert_false(fake_vm_usable(&f.pool.vm, f.a, GRANULE));

    result = swap_in(&f, true);
    assert_int_equal(result.error, 0);
    assert_int_equal(result.bytes, 12 * GRANULE);
    assert_int_equal(result.left, 0);
    assert_int_equal(count(&f.pool.counters.swapped_bytes), 0);
    assert_int_equal(count(&f.pool.counters.committed_bytes), 9 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.far, EACH), 3);
    assert_int_equal(f.pool.vm.host_chunks, 3);
    expect_content(&f);
    result = swap_in(&f, true);
    assert_int_equal(result.bytes + result.left, 0);
    close_fixture(&f);
}

/* A block that may not move keeps the granules that it shares. */
static void test_fixed_blocks_stay(void **state)
{
    struct fixture f;

    open_fixture(&f);
    fix(&f, f.b, true);
    fix(&f, f.other_half, true);
    assert_int_equal(swap_out(&f).bytes, 7 * GRANULE);
    assert_true(fake_vm_usable(&f.pool.vm, f.b, EACH));
    assert_true(fake_vm_usable(&f.pool.vm, f.half + GRANULE, 2 * GRANULE));
    assert_false(fake_vm_usable(&f.pool.vm, f.half, GRANULE));
    assert_int_equal(swap_in(&f, false).left, 0);
    expect_content(&f);
    close_fixture(&f);
}

static void test_several_times(void **state)
{
    struct fixture f;

    open_fixture(&f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(swap_out(&f).bytes, 12 * GRANULE);
        assert_int_equal(swap_out(&f).bytes, 0);
        assert_int_equal(swap_in(&f, false).left, 0);
        expect_content(&f);
    }
    close_fixture(&f);
}

/* ---- while memory is out ---- */

static void test_frees(void **state)
{
    struct fixture f;
    uint64_t address;

    open_fixture(&f);
    (void)swap_out(&f);
    pool_free(&f.pool, f.a, NULL);
    pool_free(&f.pool, f.half, &stream_a);
    pool_free(&f.pool, f.far, &stream_a);
    pool_check(&f.pool);
    assert_int_equal(spw_pool_trim(f.pool.pool, 0), 0);
    assert_int_equal(spw_pool_trim_host(f.pool.pool), 0);
    assert_int_equal(swap_in(&f, false).left, 0);
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.b, EACH, 200), 0);
    fake_vm_complete(&f.pool.vm);
    address = pool_alloc(&f.pool, EACH, &stream_a);
    assert_true(fake_vm_usable(&f.pool.vm, address, EACH));
    assert_true(spw_pool_trim(f.pool.pool, 0) > 0 || address == f.a);
    close_fixture(&f);
}

/* Another device is given access: to what is mapped now, and to the rest when it comes back. */
static void test_access(void **state)
{
    struct fixture f;

    open_fixture(&f);
    fix(&f, f.b, true);
    (void)swap_out(&f);
    f.pool.vm.shared = 0;
    assert_int_equal(spw_pool_refresh_access(f.pool.pool), SPW_OK);
    assert_int_equal(f.pool.vm.shared, 3);
    assert_int_equal(swap_in(&f, false).left, 0);
    expect_content(&f);
    close_fixture(&f);
}

static void test_the_pool_ends(void **state)
{
    struct fixture f;

    open_fixture(&f);
    fix(&f, f.b, true);
    (void)swap_out(&f);
    close_fixture(&f);
    assert_int_equal(count(&f.pool.counters.swapped_bytes), 0);
    assert_int_equal(count(&f.pool.counters.host_used_bytes), 0);
}

/* A pool that is shut takes what is swapped out along. */
static void test_the_pool_is_shut(void **state)
{
    struct fixture f;

    open_fixture(&f);
    (void)swap_out(&f);
    assert_true(count(&f.pool.counters.swapped_bytes) > 0);
    spw_pool_shut(f.pool.pool);
    assert_int_equal(count(&f.pool.counters.swapped_bytes), 0);
    close_fixture(&f);
    assert_int_equal(count(&f.pool.counters.swapped_bytes), 0);
}

/* ---- room ---- */

static void test_the_host_takes_the_rest(void **state)
{
    struct fixture f;
    uint64_t spilled;

    open_fixture(&f);
    spilled = count(&f.pool.counters.spilled_bytes);
    (void)swap_out(&f);
    f.pool.vm.most_chunks = 4;
    assert_int_equal(swap_in(&f, true).left, 0);
    assert_int_equal(f.pool.vm.chunks, 4);
    assert_int_equal(f.pool.vm.host_chunks, 8);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, EACH), 0);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.b, EACH), 2);
    assert_int_equal(count(&f.accounts[1].spilled), 2 * GRANULE);
    assert_int_equal(count(&f.pool.counters.spilled_bytes), spilled + 5 * GRANULE);
    assert_int_equal(count(&f.accounts[0].spilled), 0);
    expect_content(&f);
    pool_free(&f.pool, f.b, &stream_a);
    pool_check(&f.pool);
    close_fixture(&f);
}

/* Blocks that graphs keep come back to the device first, then those that they name. */
static void test_graphs_come_first(void **state)
{
    const struct spw_block_attributes kept = {.fix = SPW_FIXED_BY_GRAPH};
    const struct spw_block_attributes named = {.fix = SPW_NAMED_BY_GRAPH};
    struct fixture f;

    open_fixture(&f);
    spw_pool_let_graphs_move(f.pool.pool, true);
    assert_int_equal(spw_pool_set_attributes(f.pool.pool, f.other_half, 1, &kept), 1);
    assert_int_equal(spw_pool_set_attributes(f.pool.pool, f.b, 1, &named), 1);
    assert_int_equal(swap_out(&f).bytes, 12 * GRANULE);
    f.pool.vm.most_chunks = 4;
    assert_int_equal(swap_in(&f, true).left, 0);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.other_half, SHARED), 0);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.b, EACH), 1);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, EACH), 3);
    expect_content(&f);
    close_fixture(&f);
}

/* A free neighbour in the same granule goes to the host with it. */
static void test_free_memory_beside(void **state)
{
    struct fixture f;

    open_fixture(&f);
    pool_free(&f.pool, f.other_half, &stream_a);
    (void)swap_out(&f);
    f.pool.vm.most_chunks = 1;
    assert_int_equal(swap_in(&f, true).left, 0);
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.half, GRANULE, 300), 0);
    close_fixture(&f);
}

static void test_no_room(void **state)
{
    struct spw_swap_result result;
    struct fixture f;

    open_fixture(&f);
    (void)swap_out(&f);
    f.pool.vm.most_chunks = 4;
    result = swap_in(&f, false);
    assert_int_equal(result.left, 5 * GRANULE);
    assert_int_equal(result.error, 0);
    assert_int_equal(count(&f.pool.counters.swapped_bytes), 5 * GRANULE);
    spw_pool_set_host_limit(f.pool.pool, 4 * GRANULE);
    assert_int_equal(swap_in(&f, true).left, 4 * GRANULE);
    f.pool.vm.most_chunks = 0;
    assert_int_equal(swap_in(&f, true).left, 0);
    expect_content(&f);
    close_fixture(&f);
}

static void test_the_limit(void **state)
{
    struct fixture f;

    open_fixture(&f);
    (void)swap_out(&f);
    spw_pool_set_limit(f.pool.pool, 7 * GRANULE);
    assert_int_equal(swap_in(&f, false).left, 2 * GRANULE);
    spw_pool_set_limit(f.pool.pool, DEVICE * GRANULE);
    assert_int_equal(swap_in(&f, false).left, 0);
    expect_content(&f);
    close_fixture(&f);
}

/* Memory that the driver has mapped, and neither gives access to nor unmaps, serves the next
 * attempt. */
static void test_two_refusals(void **state)
{
    struct fixture f;

    for (size_t after = 3; after < 24; after += 8) {
        open_fixture(&f);
        (void)swap_out(&f);
        f.pool.vm.most_chunks = 7;
        f.pool.vm.keeps_inaccessible = true;
        f.pool.vm.fail_call = FAKE_ACCESS;
        f.pool.vm.fail_after = after;
        f.pool.vm.fail_more = 1;
        (void)swap_in(&f, true);
        f.pool.vm.fail_call = -1;
        assert_int_equal(swap_in(&f, true).left, 0);
        expect_content(&f);
        f.pool.vm.keeps_inaccessible = false;
        close_fixture(&f);
    }
}

/* ---- the file ---- */

/* The file, opened again with the page cache, so that single bytes can be read and written. */
static int cached(const struct fixture *f)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", f->file.fd);
    fd = openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void test_a_changed_file(void **state)
{
    struct spw_swap_result result;
    unsigned char byte, other;
    struct fixture f;
    int fd;

    open_fixture(&f);
    fd = cached(&f);
    for (off_t at = 0; at < 12 * GRANULE; at += 5 * GRANULE - 1) {
        off_t place = (off_t)f.file.end + at;

        (void)swap_out(&f);
        assert_int_equal(pread(fd, &byte, 1, place), 1);
        other = byte ^ 0x10;
        assert_int_equal(pwrite(fd, &other, 1, place), 1);
        result = swap_in(&f, false);
        assert_int_equal(result.error, EBADMSG);
        assert_true(result.bytes > 0 && result.left > 0);
        result = swap_in(&f, false);
        assert_int_equal(result.error, EBADMSG);
        assert_int_equal(result.bytes, 0);
        assert_int_equal(pwrite(fd, &byte, 1, place), 1);
        assert_int_equal(swap_in(&f, false).left, 0);
        expect_content(&f);
    }
    assert_int_equal(close(fd), 0);
    close_fixture(&f);
}

static void test_a_file_that_is_too_short(void **state)
{
    struct spw_swap_result result;
    struct fixture f;

    open_fixture(&f);
    (void)swap_out(&f);
    assert_int_equal(ftruncate(f.file.fd, (off_t)(f.file.end - 1)), 0);
    result = swap_in(&f, false);
    assert_int_equal(result.error, EIO);
    assert_true(result.left > 0 && result.bytes > 0);
    close_fixture(&f);
}

/* What the file does not take stays in place, and nothing is written behind the rest. */
static void test_a_full_file(void **state)
{
    struct rlimit limit = {5 * GRANULE + 1, RLIM_INFINITY}, unlimited;
    struct spw_swap_result result;
    struct fixture f;

    open_fixture(&f);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
    signal(SIGXFSZ, SIG_DFL); /* it would end the process */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    result = swap_out(&f);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
    assert_int_equal(result.error, EFBIG);
    assert_true(result.bytes > 0 && result.bytes <= 5 * GRANULE);
    assert_int_equal(f.file.end, result.bytes);
    assert_int_equal(lseek(f.file.fd, 0, SEEK_END), result.bytes);
    assert_int_equal(swap_in(&f, false).left, 0);
    expect_content(&f);
    close_fixture(&f);
}

/* A disk that could not reserve room fills up: what it does not take stays in place, and nothing is
 * written behind the rest. */
static void test_a_full_disk(void **state)
{
    static const int errors[] = {ENOSPC, EOPNOTSUPP, EINTR};
    struct spw_swap_result result;
    struct fixture f;

    for (int i = 0; i < 3; i++) {
        open_fixture(&f);
        reserve_error = errors[i];
        writes_until_full = 1 + i;
        result = swap_out(&f);
        reserve_error = 0;
        writes_until_full = -1;
        assert_int_equal(result.error, ENOSPC);
        assert_true(result.bytes < 12 * GRANULE);
        assert_int_equal(f.file.end, result.bytes);
        assert_int_equal(lseek(f.file.fd, 0, SEEK_END), result.bytes);
        assert_int_equal(swap_in(&f, false).left, 0);
        expect_content(&f);
        close_fixture(&f);
    }
}

/* Room is reserved once, for all that goes out. */
static void test_reserved_room(void **state)
{
    struct stat status;
    struct fixture f;

    open_fixture(&f);
    reservations = 0;
    assert_int_equal(swap_out(&f).bytes, 12 * GRANULE);
    assert_int_equal(reservations, 1);
    assert_int_equal(fstat(f.file.fd, &status), 0);
    assert_int_equal(status.st_size, 12 * GRANULE);
    assert_int_equal(swap_out(&f).bytes, 0);
    assert_int_equal(reservations, 1); /* nothing goes out */
    assert_int_equal(swap_in(&f, false).left, 0);
    close_fixture(&f);
}

/* The file is used past the page cache, unless its device wants another alignment. */
static void test_page_cache(void **state)
{
    struct fixture f;

    for (int odd = 0; odd < 2; odd++) {
        open_pool(&f);
        assert_int_equal(spw_migrate_swap_file_open("/tmp", &f.file), 0);
        assert_int_equal(is_direct(f.file.fd), f.file.direct);
        odd_writes = odd && f.file.direct ? 1 : 0;
        assert_int_equal(swap_out(&f).bytes, 12 * GRANULE);
        assert_int_equal(odd_writes, 0);
        assert_true(!odd || !is_direct(f.file.fd));
        assert_int_equal(swap_in(&f, false).left, 0);
        expect_content(&f);
        close_fixture(&f);
    }
}

/* A write that is interrupted is made again, and one that is cut short goes on. */
static void test_interrupted_writes(void **state)
{
    struct fixture f;

    open_fixture(&f);
    interrupted = short_writes = 1;
    assert_int_equal(swap_out(&f).bytes, 12 * GRANULE);
    assert_int_equal(interrupted + short_writes, 0);
    assert_int_equal(f.file.end, 12 * GRANULE);
    assert_int_equal(swap_in(&f, false).left, 0);
    expect_content(&f);
    close_fixture(&f);
}

/* A write that takes nothing means that the file is full. */
static void test_empty_writes(void **state)
{
    struct spw_swap_result result;
    struct fixture f;

    open_fixture(&f);
    empty_writes = 2;
    result = swap_out(&f);
    assert_int_equal(result.error, ENOSPC);
    assert_int_equal(result.bytes, 0);
    assert_int_equal(empty_writes, 1);
    empty_writes = 0;
    expect_content(&f);
    close_fixture(&f);
}

/* The file has no name, also on a file system that cannot create one without, and in a process
 * without standard input. */
static void test_file_without_a_name(void **state)
{
    for (int way = 0; way < 3; way++) {
        int input = dup(STDIN_FILENO);
        struct fixture f;

        no_nameless = way > 0;
        if (way == 2) {
            close(STDIN_FILENO);
        }
        open_fixture(&f);
        no_nameless = false;
        assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
        assert_int_equal(close(input), 0);
        assert_int_equal(rmdir(folder), 0);
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(swap_out(&f).bytes, 12 * GRANULE);
        assert_int_equal(swap_in(&f, false).left, 0);
        expect_content(&f);
        close_fixture(&f);
    }
}

static void test_folders(void **state)
{
    struct spw_swap_file file;
    char longer[5000];

    assert_int_equal(spw_migrate_swap_file_open("/tmp/spillway/none", &file), ENOENT);
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(spw_migrate_swap_file_open(longer, &file), ENAMETOOLONG);
}

/* ---- refusals of the driver ---- */

/* One call fails, and `more` after it; then all is tried again. True if the call was reached. */
static bool survives(int call, size_t after, size_t more)
{
    struct spw_swap_result result;
    struct fixture f;
    size_t before;
    bool reached;

    open_fixture(&f);
    before = f.pool.vm.calls[call];
    f.pool.vm.fail_call = call;
    f.pool.vm.fail_after = after;
    f.pool.vm.fail_more = more;
    (void)swap_out(&f);
    result = swap_in(&f, false);
    reached = f.pool.vm.calls[call] - before > after;
    f.pool.vm.fail_call = -1;
    assert_true(count(&f.pool.counters.swapped_bytes) <= result.left);
    assert_int_equal(swap_in(&f, false).left, 0);
    expect_content(&f);
    close_fixture(&f);
    return reached;
}

static void test_refusals(void **state)
{
    for (size_t more = 0; more < 4; more++) {
        pool_sweep(survives, FAKE_UNMAP, more);
        pool_sweep(survives, FAKE_CREATE, more);
        pool_sweep(survives, FAKE_MAP, more);
        pool_sweep(survives, FAKE_ACCESS, more);
        pool_sweep(survives, FAKE_READ, more);
        pool_sweep(survives, FAKE_WRITE, more);
        pool_sweep(survives, FAKE_RELEASE, more);
    }
}

/* A copy that failed may be under way still, in the buffer: it is not given to others. */
static void test_copies_that_fail(void **state)
{
    static const int calls[] = {-1, FAKE_READ, FAKE_WRITE};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        long live = live_allocations;
        struct fixture f;

        open_fixture(&f);
        f.pool.vm.fail_call = calls[i] == FAKE_READ ? FAKE_READ : -1;
        (void)swap_out(&f);
        f.pool.vm.fail_call = calls[i] == FAKE_WRITE ? FAKE_WRITE : -1;
        (void)swap_in(&f, false);
        f.pool.vm.fail_call = -1;
        assert_int_equal(swap_in(&f, false).left, 0);
        expect_content(&f);
        close_fixture(&f);
        assert_int_equal(live_allocations - live, calls[i] != -1);
    }
}

/* Without memory for records nothing is swapped out, and without a buffer there is no file. */
static void test_no_memory(void **state)
{
    struct spw_swap_file none = {.buffer = (void *)&none};
    struct spw_swap_result result;
    struct fixture f;

    open_fixture(&f);
    calls_until_failure = 1;
    assert_int_equal(spw_migrate_swap_file_open(folder, &none), ENOMEM);
    assert_null(none.buffer);
    calls_until_failure = 1;
    result = swap_out(&f);
    assert_int_equal(result.error, ENOMEM);
    assert_int_equal(result.bytes, 0);
    assert_int_equal(f.file.end, 0);
    expect_content(&f);
    assert_int_equal(swap_out(&f).bytes, 12 * GRANULE);
    assert_int_equal(swap_in(&f, true).left, 0);
    expect_content(&f);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_and_in),
        cmocka_unit_test(test_fixed_blocks_stay),
        cmocka_unit_test(test_several_times),
        cmocka_unit_test(test_frees),
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_the_pool_ends),
        cmocka_unit_test(test_the_host_takes_the_rest),
        cmocka_unit_test(test_graphs_come_first),
        cmocka_unit_test(test_free_memory_beside),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_the_limit),
        cmocka_unit_test(test_two_refusals),
        cmocka_unit_test(test_a_changed_file),
        cmocka_unit_test(test_a_file_that_is_too_short),
        cmocka_unit_test(test_a_full_file),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_reserved_room),
        cmocka_unit_test(test_page_cache),
        cmocka_unit_test(test_interrupted_writes),
        cmocka_unit_test(test_empty_writes),
        cmocka_unit_test(test_file_without_a_name),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_pool_is_shut),
        cmocka_unit_test(test_copies_that_fail),
        cmocka_unit_test(test_no_memory),
    };
    int failed;

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(folder) == 0 ? failed : 1;
}
