/* A device of 700 GiB of which 450 GiB are backed in chunks of 2 MiB, mapped in shuffled order,
 * with the stock limits on mappings and files and under 1 GiB of host memory. Slow. */
#include "check.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __has_feature
#    if __has_feature(thread_sanitizer)
#        define SANITIZE_THREAD
#    endif
#endif
#ifdef __SANITIZE_THREAD__
#    define SANITIZE_THREAD
#endif

#define CHUNK   (2 * MIB)
#define CHUNKS  ((size_t)(450 * GIB / CHUNK))
#define SAMPLES 1000 /* chunks that are written and read back */

static CUmemGenericAllocationHandle *handles;
static uint32_t *order;

static uint32_t draw(uint32_t below)
{
    static uint64_t seed = 42;

    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % below);
}

static void shuffle(void)
{
    for (uint32_t i = 0; i < CHUNKS; i++) {
        order[i] = i;
    }
    for (uint32_t i = (uint32_t)CHUNKS - 1; i > 0; i--) {
        uint32_t j = draw(i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
}

/* A field of /proc/self/status, in bytes. */
static size_t status_bytes(const char *field)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kib = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = strtoul(line + strlen(field) + 1, NULL, 10);
        }
    }
    fclose(file);
    return kib << 10;
}

static unsigned char mark_of(uint32_t slot)
{
    return (unsigned char)(1 + slot % 251);
}

static void test_shuffled_chunks(void **state)
{
    CUdeviceptr base = reserve(700 * GIB);
    unsigned char byte = 0;

    assert_int_equal(free_bytes(), 700 * GIB);
    for (size_t i = 0; i < CHUNKS; i++) {
        handles[i] = create_chunk(CHUNK);
    }
    assert_int_equal(free_bytes(), 250 * GIB);
    shuffle();
    for (size_t i = 0; i < CHUNKS; i++) {
        CUdeviceptr address = base + order[i] * CHUNK;

        OK(cuMemMap(address, CHUNK, 0, handles[i], 0));
        allow(address, CHUNK);
    }
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t slot = (uint32_t)(i * (CHUNKS / SAMPLES));

        byte = mark_of(slot);
        OK(cuMemcpyHtoD(base + slot * CHUNK + 4321, &byte, 1));
    }
    OK(cuMemsetD8(base + 100 * CHUNK, 0, 20 * GIB)); /* zeros on mostly untouched memory */
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t slot = (uint32_t)(i * (CHUNKS / SAMPLES));
        bool zeroed = slot >= 100 && slot < 100 + 20 * GIB / CHUNK;

        OK(cuMemcpyDtoH(&byte, base + slot * CHUNK + 4321, 1));
        assert_int_equal(byte, zeroed ? 0 : mark_of(slot));
    }
    assert_true(status_bytes("VmHWM:") < 1 * GIB);

    shuffle();
    for (size_t i = 0; i < CHUNKS; i++) {
        OK(cuMemUnmap(base + order[i] * CHUNK, CHUNK));
    }
    for (size_t i = 0; i < CHUNKS; i++) {
        OK(cuMemRelease(handles[i]));
    }
    assert_int_equal(free_bytes(), 700 * GIB);
    OK(cuMemAddressFree(base, 700 * GIB));
    assert_true(status_bytes("VmHWM:") < 1 * GIB);
}

/* The whole of it in one call each, as a program does that maps in order. */
static void test_long_ranges(void **state)
{
    const size_t size = 100 * GIB;
    CUdeviceptr base = reserve(size);

    for (size_t at = 0; at < size; at += CHUNK) {
        CUmemGenericAllocationHandle handle = create_chunk(CHUNK);

        OK(cuMemMap(base + at, CHUNK, 0, handle, 0));
        OK(cuMemRelease(handle));
    }
    allow(base, size);
    OK(cuMemUnmap(base, size));
    assert_int_equal(free_bytes(), 700 * GIB);
    OK(cuMemAddressFree(base, size));
}

static int set_up(void **state)
{
    handles = calloc(CHUNKS, sizeof(*handles));
    order = calloc(CHUNKS, sizeof(*order));
    return handles == NULL || order == NULL ? -1 : use_device(state);
}

static int tear_down(void **state)
{
    free(handles);
    free(order);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffled_chunks),
        cmocka_unit_test(test_long_ranges),
    };
    struct rlimit files = {.rlim_cur = 1024, .rlim_max = 1024};

    setenv("SPILLWAY_SIM_MEMORY", "700GiB", 1);
#ifdef SANITIZE_THREAD
    setenv("SPILLWAY_SIM_MAP_MAX", "8192", 1); /* its shadow takes several for each of ours */
#endif
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
