/* Simulated time: timelines worked out by hand, in nanoseconds. Each test begins with a clock of 0
 * on its own streams; what a call costs (costs.def) passes before anything else happens. */
#include "cases.h"
#include "sim/driver/core/control.h"
#include "work.h"

#include <fcntl.h>

enum { LAUNCH = 3000, RECORD = 2000, ASK = 1000, MS = 1000000 };

/* Bytes that a copy moves over the link in a millisecond. */
#define LINK_MS ((size_t)50000000)

/* The parameters of spw_touch_NAME. */
struct touch {
    struct {
        CUdeviceptr address;
        size_t bytes;
    } ranges[8];
    uint64_t written;
    uint64_t nanoseconds;
};

static uint64_t began;
static CUfunction kernel;

static void begin(const struct work *work)
{
    OK(cuModuleGetFunction(&kernel, work->module, "spw_touch_test"));
    began = spillway_sim_time();
}

/* The host's clock. */
static uint64_t now(void)
{
    return spillway_sim_time() - began;
}

static void touch(CUstream stream, struct touch touch)
{
    size_t size = sizeof(touch);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &touch, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
}

static void busy(CUstream stream, uint64_t nanoseconds)
{
    touch(stream, (struct touch){.nanoseconds = nanoseconds});
}

static CUstream stream(void)
{
    return new_stream(CU_STREAM_NON_BLOCKING);
}

static void test_calls(void **state)
{
    CUmemGenericAllocationHandle chunk;
    CUcontext ctx;

    begin(*state);
    chunk = create_chunk(2 * MIB);
    assert_int_equal(now(), 57000);
    OK(cuCtxGetCurrent(&ctx));
    assert_int_equal(now(), 57000);
    OK(cuMemRelease(chunk));
    assert_int_equal(now(), 81000);
    free_bytes();
    assert_int_equal(now(), 81200);
}

static void test_one_stream(void **state)
{
    CUstream one = stream();

    begin(*state);
    busy(one, MS);
    busy(one, MS / 2);
    assert_int_equal(now(), 2 * LAUNCH);
    OK(cuStreamSynchronize(one));
    assert_int_equal(now(), LAUNCH + MS + MS / 2);
    busy(one, MS);
    free_bytes();
    OK(cuCtxSynchronize());
    assert_int_equal(now(), 2 * LAUNCH + 2 * MS + MS / 2);
}

static void test_streams_overlap(void **state)
{
    CUstream one = stream(), other = stream();

    begin(*state);
    busy(one, MS);
    busy(other, MS);
    OK(cuStreamSynchronize(one));
    assert_int_equal(now(), LAUNCH + MS);
    OK(cuStreamSynchronize(other));
    assert_int_equal(now(), 2 * LAUNCH + MS);
    OK(cuStreamSynchronize(other)); /* nothing is left to wait for */
    assert_int_equal(now(), 2 * LAUNCH + MS + ASK);
}

/* While the host is in a long call, one kernel follows the other. */
static void test_work_goes_on(void **state)
{
    CUstream one = stream();
    CUmemGenericAllocationHandle chunk;

    begin(*state);
    for (int i = 0; i < 4; i++) {
        busy(one, 10000);
    }
    chunk = create_chunk(2 * MIB);
    assert_int_equal(now(), 4 * LAUNCH + 57000);
    OK(cuStreamQuery(one));
    OK(cuMemRelease(chunk));
}

static void test_legacy_stream_waits(void **state)
{
    CUstream blocking = new_stream(CU_STREAM_DEFAULT);

    begin(*state);
    busy(blocking, MS);
    busy(NULL, MS);
    OK(cuStreamSynchronize(NULL));
    assert_int_equal(now(), LAUNCH + 2 * MS);
}

static void test_copy_engines(void **state)
{
    CUstream up = stream(), up_too = stream(), down = stream();
    CUdeviceptr words = new_words(3 * LINK_MS / sizeof(uint32_t));
    void *host;

    OK(cuMemHostAlloc(&host, LINK_MS, 0));
    begin(*state);
    OK(cuMemcpyHtoDAsync(words, host, LINK_MS, up));
    OK(cuMemcpyHtoDAsync(words + LINK_MS, host, LINK_MS / 2, up_too));
    OK(cuMemcpyDtoHAsync(host, words + 2 * LINK_MS, LINK_MS, down));
    OK(cuStreamSynchronize(up));
    assert_int_equal(now(), LAUNCH + MS);
    OK(cuStreamSynchronize(down)); /* the other direction's engine was free */
    assert_int_equal(now(), 3 * LAUNCH + MS);
    OK(cuStreamSynchronize(up_too)); /* this one's was not */
    assert_int_equal(now(), LAUNCH + MS + MS / 2);
    OK(cuMemFreeHost(host));
    OK(cuMemFree(words));
}

/* Read and written, at 4.3 TB/s together. */
static void test_copy_on_the_device(void **state)
{
    CUstream one = stream();
    CUdeviceptr words = new_words(17200000 / sizeof(uint32_t));

    begin(*state);
    OK(cuMemcpyDtoDAsync(words, words + 8600000, 8600000, one));
    OK(cuStreamSynchronize(one));
    assert_int_equal(now(), LAUNCH + 4000);
    OK(cuMemFree(words));
}

static void test_event_wait(void **state)
{
    CUstream one = stream(), other = stream();
    CUevent done = new_event(CU_EVENT_DEFAULT), later = new_event(CU_EVENT_DEFAULT);
    float ms;

    begin(*state);
    busy(one, MS);
    OK(cuEventRecord(done, one));
    OK(cuStreamWaitEvent(other, done, 0));
    busy(other, MS / 2);
    OK(cuEventRecord(later, other));
    assert_int_equal(now(), 2 * LAUNCH + 3 * RECORD);
    OK(cuEventSynchronize(later));
    assert_int_equal(now(), LAUNCH + MS + MS / 2);
    OK(cuEventElapsedTime(&ms, done, later));
    assert_true(ms > 0.4999F && ms < 0.5001F);
}

static void test_busy_wait(void **state)
{
    CUstream one = stream();
    CUevent done = new_event(CU_EVENT_DISABLE_TIMING);
    CUcontext ctx;

    begin(*state);
    busy(one, MS);
    OK(cuEventRecord(done, one));
    for (int i = 0; i < 3; i++) {
        FAILS(cuEventQuery(done), CUDA_ERROR_NOT_READY);
        OK(cuCtxGetCurrent(&ctx));
    }
    assert_int_equal(now(), LAUNCH + RECORD + 3 * ASK);
    OK(cuEventQuery(done));
    assert_int_equal(now(), LAUNCH + MS);
    busy(one, MS);
    for (int i = 0; i < 3; i++) {
        FAILS(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    }
    OK(cuStreamQuery(one));
    assert_int_equal(now(), 2 * LAUNCH + 2 * MS);
}

static void test_questions_in_passing(void **state)
{
    CUstream one = stream();
    CUevent done = new_event(CU_EVENT_DISABLE_TIMING);

    begin(*state);
    busy(one, MS);
    OK(cuEventRecord(done, one));
    for (int i = 0; i < 100; i++) {
        FAILS(cuEventQuery(done), CUDA_ERROR_NOT_READY);
        FAILS(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
        free_bytes();
    }
    assert_int_equal(now(), LAUNCH + RECORD + 100 * (2 * ASK + 200));
}

/* A loop over several events goes on when any work is complete, and misses none of them. */
static void test_waiting_for_several(void **state)
{
    CUstream streams[] = {stream(), stream(), stream()};
    CUevent events[3];
    uint64_t begun;
    int rounds = 0;

    begin(*state);
    for (int i = 0; i < 3; i++) {
        events[i] = new_event(CU_EVENT_DISABLE_TIMING);
        busy(streams[i], (i + 1) * MS);
        OK(cuEventRecord(events[i], streams[i]));
    }
    begun = now();
    for (int i = 0; i < 3; i++) {
        for (; cuEventQuery(events[i]) == CUDA_ERROR_NOT_READY; rounds++) {
            for (int later = i + 1; later < 3; later++) {
                FAILS(cuEventQuery(events[later]), CUDA_ERROR_NOT_READY);
            }
        }
        assert_true(now() - begun > (uint64_t)(i + 1) * MS - MS / 2);
        assert_true(now() - begun < (uint64_t)(i + 1) * MS + MS / 10);
    }
    assert_true(rounds < 20); /* the clock has jumped */
}

/* Polling does not wait for work that only a later call can release. */
static void test_asking_in_vain(void **state)
{
    const struct work *work = *state;
    CUstream one = stream();
    uint32_t *flag = new_flag();

    begin(work);
    OK(launch_spin(work, one, device_address(flag)));
    for (int i = 0; i < 10; i++) {
        FAILS(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    }
    *flag = 1;
    OK(cuStreamSynchronize(one));
}

/* 4 MiB of addresses, the first half on the device, the second on the host. */
static CUdeviceptr map_both(void)
{
    CUmemAllocationProp prop = device_memory(0);
    CUdeviceptr address = reserve(4 * MIB);
    CUmemGenericAllocationHandle handle = create_chunk(2 * MIB);

    OK(cuMemMap(address, 2 * MIB, 0, handle, 0));
    OK(cuMemRelease(handle));
    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemMap(address + 2 * MIB, 2 * MIB, 0, handle, 0));
    OK(cuMemRelease(handle));
    allow(address, 4 * MIB);
    return address;
}

static void test_kernels_on_the_host_tier(void **state)
{
    const uint64_t read_ns = 59919, written_ns = 39719; /* 2 MiB at 35 and 52.8 GB/s, rounded up */
    CUdeviceptr address = map_both();
    CUstream one = stream();
    struct touch both = {.ranges = {{address, 4 * MIB}}, .nanoseconds = MS};
    uint64_t before;

    begin(*state);
    touch(one, both);
    OK(cuStreamSynchronize(one));
    assert_int_equal(now(), LAUNCH + MS + read_ns);
    both.written = 1;
    touch(one, both);
    OK(cuStreamSynchronize(one));
    assert_int_equal(now(), 2 * LAUNCH + 2 * MS + read_ns + written_ns);
    before = now();
    both.ranges[0].bytes = 2 * MIB;
    touch(one, both);
    OK(cuStreamSynchronize(one));
    assert_int_equal(now() - before, LAUNCH + MS);
    OK(cuMemUnmap(address, 4 * MIB));
    OK(cuMemAddressFree(address, 4 * MIB));
}

/* Chunks on the host are copied over the link: 2 MiB at 50 GB/s. */
static void test_copies_of_the_host_tier(void **state)
{
    CUdeviceptr address = map_both();
    CUstream one = stream();

    begin(*state);
    OK(cuMemcpyAsync(address, address + 2 * MIB, 2 * MIB, one));
    OK(cuStreamSynchronize(one));
    assert_int_equal(now(), LAUNCH + 41944);
    OK(cuMemUnmap(address, 4 * MIB));
    OK(cuMemAddressFree(address, 4 * MIB));
}

/* Without a time of its own: its bytes, and 2 us at least. */
static void test_kernels_by_their_bytes(void **state)
{
    CUdeviceptr words = new_words(43000000 / sizeof(uint32_t));
    CUstream one = stream();
    uint64_t before;

    begin(*state);
    touch(one, (struct touch){.ranges = {{words, 43000000}}});
    OK(cuStreamSynchronize(one));
    assert_int_equal(now(), LAUNCH + 10000);
    before = now();
    touch(one, (struct touch){.ranges = {{words, 4}}});
    OK(cuStreamSynchronize(one));
    assert_int_equal(now() - before, LAUNCH + 2000);
    OK(cuMemFree(words));
}

/* ---- in processes of their own: the log, and that it is the same again ---- */

/* Kernels and copies in four streams that wait for each other now and then. */
static int run_sequence(void)
{
    struct work *work;
    CUstream streams[4];
    CUevent event;
    void *state, *host;
    CUdeviceptr words;

    if (setup_work(&state) != 0) {
        return 1;
    }
    work = state;
    begin(work);
    event = new_event(CU_EVENT_DISABLE_TIMING);
    words = new_words(MIB);
    OK(cuMemHostAlloc(&host, 4 * MIB, 0));
    for (int i = 0; i < 4; i++) {
        streams[i] = stream();
    }
    for (unsigned int i = 0; i < 400; i++) {
        CUstream one = streams[i * i % 4];

        busy(one, 1000 * (i % 7) + 500);
        OK(cuMemcpyHtoDAsync(words + i % 4 * MIB, host, MIB / (i % 3 + 1), one));
        if (i % 5 == 0) {
            OK(cuEventRecord(event, one));
            OK(cuStreamWaitEvent(streams[(i + 1) % 4], event, 0));
        }
        if (i % 50 == 0) {
            while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
            }
        }
    }
    OK(cuCtxSynchronize());
    return end_work(&state);
}

/* One kernel of 5 us, in stream 2. */
static int run_short(void)
{
    void *state;

    if (setup_work(&state) != 0) {
        return 1;
    }
    begin(state);
    busy(stream(), 5000);
    OK(cuCtxSynchronize());
    return end_work(&state);
}

/* A kernel of one address, and a struct of words of which all but two point to memory. The memory
 * of one of them is unmapped before the kernel runs: the word may have been no address. */
static int run_struct(void)
{
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry look(.param .u64 p,"
                              " .param .align 8 .b8 s[480])\n{\n    ret;\n}\n";
    CUdeviceptr words, more, address, hole, numbers[60];
    CUmemGenericAllocationHandle chunk;
    void *params[] = {&words, numbers};
    CUstream one;
    CUmodule module;
    void *state;

    if (setup_work(&state) != 0) {
        return 1;
    }
    one = stream();
    words = new_words(1024);
    more = new_words(1024);
    address = reserve(2 * MIB);
    hole = reserve(2 * MIB);
    chunk = create_chunk(2 * MIB);
    OK(cuMemMap(address, 2 * MIB, 0, chunk, 0));
    allow(address, 2 * MIB);
    for (CUdeviceptr i = 0; i < 60; i++) {
        numbers[i] = more + i * 16;
    }
    numbers[1] = hole;
    numbers[2] = 7;
    numbers[3] = numbers[0];
    numbers[4] = words;
    numbers[59] = address;
    begin(state);
    busy(one, MS);
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&kernel, module, "look"));
    OK(launch(kernel, one, params));
    OK(cuMemUnmap(address, 2 * MIB));
    OK(cuCtxSynchronize());
    return end_work(&state);
}

/* One call gives access to two chunks of 2 MiB and one of 34 MiB, and one takes them away: 10 if
 * that takes the time of two calls, 20 if that of three chunks and their bytes. */
static int run_range(void)
{
    const size_t sizes[] = {2 * MIB, 2 * MIB, 34 * MIB};
    unsigned long long bytes = 0, time;
    CUdeviceptr address, at;
    void *state;

    if (setup_work(&state) != 0) {
        return 1;
    }
    at = address = reserve(38 * MIB);
    for (int i = 0; i < 3; i++) {
        CUmemGenericAllocationHandle chunk = create_chunk(sizes[i]);

        OK(cuMemMap(at, sizes[i], 0, chunk, 0));
        at += sizes[i];
    }
    time = spillway_sim_time();
    allow(address, 38 * MIB);
    OK(cuMemUnmap(address, 38 * MIB));
    time = spillway_sim_time() - time;
    assert_int_equal(spillway_sim_chunks("cuMemSetAccess", &bytes), 3);
    assert_int_equal(bytes, 38 * MIB);
    return time == 86000 ? 10 : time == 3 * 86000 + 32 * 45 ? 20 : 0;
}

/* The time of all calls on a chunk of 4 MiB, at the device or at NUMA node 0 of the host. */
static unsigned long long time_of_chunk(CUmemLocationType type)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = type, .id = 0}};
    CUdeviceptr address = reserve(4 * MIB);
    unsigned long long time = spillway_sim_time();
    CUmemGenericAllocationHandle chunk;

    OK(cuMemCreate(&chunk, 4 * MIB, &prop, 0));
    OK(cuMemMap(address, 4 * MIB, 0, chunk, 0));
    allow(address, 4 * MIB);
    OK(cuMemUnmap(address, 4 * MIB));
    OK(cuMemRelease(chunk));
    return spillway_sim_time() - time;
}

/* 30 if chunks cost by their tier: the five calls, those of 2 MiB, and those of 2 MiB more. */
static int run_tiers(void)
{
    const unsigned long long calls = 5 * 200;
    void *state;

    if (setup_work(&state) != 0) {
        return 1;
    }
    return time_of_chunk(CU_MEM_LOCATION_TYPE_DEVICE) == calls + 72730 + 2 * 462 &&
                   time_of_chunk(CU_MEM_LOCATION_TYPE_HOST_NUMA) == calls + 841200 + 2 * 265467
               ? 30
               : 0;
}

/* 40 if the link is half as fast from the device as to it. */
static int run_directions(void)
{
    CUdeviceptr words;
    CUstream up, down;
    void *state, *host;
    uint64_t up_ns, down_ns;

    if (setup_work(&state) != 0) {
        return 1;
    }
    up = stream();
    down = stream();
    words = new_words(2 * LINK_MS / sizeof(uint32_t));
    OK(cuMemHostAlloc(&host, 2 * LINK_MS, 0));
    begin(state);
    OK(cuMemcpyHtoDAsync(words, host, LINK_MS, up));
    OK(cuMemcpyDtoHAsync((char *)host + LINK_MS, words + LINK_MS, LINK_MS, down));
    OK(cuStreamSynchronize(up));
    up_ns = now();
    OK(cuStreamSynchronize(down));
    down_ns = now();
    return up_ns == LAUNCH + MS && down_ns == 2 * LAUNCH + 2 * MS ? 40 : 0;
}

static const struct test_case cases[] = {{"sequence", run_sequence},
                                         {"short", run_short},
                                         {"struct", run_struct},
                                         {"range", run_range},
                                         {"tiers", run_tiers},
                                         {"directions", run_directions},
                                         {0}};

/* Runs a case with a log, and reads that without pids, thread ids and addresses. */
static char *log_of(const char *name, const char *path, const char *seed)
{
    char errors[1024], setting[128], seed_setting[64];
    char *text = calloc(1, MIB), line[1024];
    FILE *file;

    unlink(path);
    snprintf(setting, sizeof(setting), "SPILLWAY_SIM_LOG=%s", path);
    snprintf(seed_setting, sizeof(seed_setting), "SPILLWAY_SIM_SEED=%s", seed);
    assert_int_equal(run_case(name, errors, sizeof(errors), setting, seed_setting, NULL), 0);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *rest = strchr(strchr(line, ' ') + 1, ' ');
        size_t used = strlen(text);

        assert_true(used + strlen(rest) < MIB);
        for (const char *c = rest; *c != '\0'; c++) {
            if (c[0] == '0' && c[1] == 'x') {
                c += 1 + strspn(c + 2, "0123456789abcdef");
            } else {
                text[used++] = *c;
            }
        }
    }
    fclose(file);
    unlink(path);
    return text;
}

static void test_same_again(void **state)
{
    char path[] = "/tmp/spillway-test-time-XXXXXX";
    const char *seeds[] = {"0", "7"};

    close(mkstemp(path));
    for (int i = 0; i < 2; i++) {
        char *first = log_of("sequence", path, seeds[i]);
        char *again = log_of("sequence", path, seeds[i]);

        assert_non_null(strstr(first, "ran "));
        assert_string_equal(first, again);
        free(first);
        free(again);
    }
}

static void test_log(void **state)
{
    char path[] = "/tmp/spillway-test-time-XXXXXX";
    unsigned long long began_at, ended_at, called_at, returned_at;
    const char *call, *work;
    char *text;

    close(mkstemp(path));
    text = log_of("short", path, "0");
    call = strstr(text, "cuLaunchKernel = 0 kernel=spw_touch_test item=2.1 t=");
    work = strstr(text, "kernel spw_touch_test t=");
    assert_non_null(call);
    assert_non_null(work);
    assert_int_equal(sscanf(strstr(call, "t=") + 2, "%llu..%llu", &called_at, &returned_at), 2);
    assert_int_equal(returned_at - called_at, LAUNCH);
    assert_int_equal(sscanf(strstr(work, " t=") + 3, "%llu..%llu", &began_at, &ended_at), 2);
    assert_int_equal(began_at, returned_at);
    assert_int_equal(ended_at - began_at, 5000);
    assert_non_null(strstr(work, " device=0 in=0 out=0\n"));
    free(text);
}

/* By default a range costs as much as its chunks. */
static void test_ranges(void **state)
{
    char errors[1024];

    assert_int_equal(run_case("range", errors, sizeof(errors), "SPILLWAY_SIM_COSTS=range", NULL),
                     10);
    assert_int_equal(run_case("range", errors, sizeof(errors), "SPILLWAY_SIM_SEED=0", NULL), 20);
    assert_int_equal(run_case("tiers", errors, sizeof(errors), "SPILLWAY_SIM_COSTS=h100", NULL),
                     30);
}

static void test_directions_of_the_link(void **state)
{
    char errors[1024];

    assert_int_equal(
        run_case("directions", errors, sizeof(errors), "SPILLWAY_SIM_LINK_OUT=25", NULL), 40);
    assert_int_equal(run_case("directions", errors, sizeof(errors), "SPILLWAY_SIM_LINK=50", NULL),
                     0);
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;

    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        found++;
    }
    return found;
}

/* 16 bytes a thread behind each of 57 addresses, 56 of them in the struct. */
static void test_uses_in_log(void **state)
{
    char path[] = "/tmp/spillway-test-time-XXXXXX";
    const char *call, *uses;
    char *text;

    close(mkstemp(path));
    text = log_of("struct", path, "7");
    call = strstr(text, "cuLaunchKernel = 0 kernel=look item=2.2 t=");
    uses = strstr(text, " uses 2.2 r+512 r+512");
    assert_non_null(call);
    assert_non_null(uses);
    assert_true(uses < call);
    assert_int_equal(count(text, " r+512"), 57);
    assert_true(count(text, " uses 2.2 r+512") > 1);
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_calls),
        WORK_TEST(test_one_stream),
        WORK_TEST(test_streams_overlap),
        WORK_TEST(test_work_goes_on),
        WORK_TEST(test_legacy_stream_waits),
        WORK_TEST(test_copy_engines),
        WORK_TEST(test_copy_on_the_device),
        WORK_TEST(test_event_wait),
        WORK_TEST(test_busy_wait),
        WORK_TEST(test_questions_in_passing),
        WORK_TEST(test_waiting_for_several),
        WORK_TEST(test_asking_in_vain),
        WORK_TEST(test_kernels_on_the_host_tier),
        WORK_TEST(test_copies_of_the_host_tier),
        WORK_TEST(test_kernels_by_their_bytes),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_directions_of_the_link),
        cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_uses_in_log),
    };
    int result;

    setenv("SPILLWAY_SIM_TIME", "on", 1);
    if (is_case(argc, argv, cases, &result)) {
        return result;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
