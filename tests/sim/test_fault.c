/* Injected faults, the call log, and options that cannot be used. Each case runs in a process of
 * its own, because the environment is read once: the program runs itself with the case as argument.
 */
#include "cases.h"
#include "check.h"

#include <string.h>
#include <unistd.h>

#include "sim/driver/core/control.h"

static char log_path[] = "/tmp/spillway-sim-test-XXXXXX";

/* The cases: what a child does. 0 is success. */
static int results_of_ten(CUresult *results)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle;

    if (use_device(NULL) != 0) {
        return -1;
    }
    for (int i = 0; i < 10; i++) {
        results[i] = cuMemCreate(&handle, 2 * MIB, &prop, 0);
    }
    return 0;
}

static int case_third(void)
{
    CUresult results[10];

    if (results_of_ten(results) != 0) {
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        if (results[i] != (i == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS)) {
            return 2 + i;
        }
    }
    return spillway_sim_calls("cuMemCreate") == 10 ? 0 : 99;
}

static int case_onwards(void)
{
    CUresult results[10];

    if (results_of_ten(results) != 0) {
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        CUresult expected = CUDA_SUCCESS;

        if (i == 1) {
            expected = CUDA_ERROR_NOT_READY;
        } else if (i >= 4) {
            expected = CUDA_ERROR_UNKNOWN;
        }
        if (results[i] != expected) {
            return 2 + i;
        }
    }
    return 0;
}

static int case_init_fails(void)
{
    int count;

    if (cuInit(0) != CUDA_ERROR_NO_DEVICE ||
        cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED) {
        return 1;
    }
    return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS ? 0 : 2;
}

static int case_defaults(void)
{
    size_t total = 0;
    int count = 0;

    return use_device(NULL) == 0 && cuDeviceGetCount(&count) == 0 && count == 1 &&
                   cuDeviceTotalMem(&total, 0) == 0 && total > 70 * GIB
               ? 0
               : 1;
}

static int case_percent(void)
{
    size_t total = 0;
    char name[64];

    return use_device(NULL) == 0 && cuDeviceTotalMem(&total, 0) == 0 &&
                   cuDeviceGetName(name, sizeof(name), 0) == 0 && strstr(name, "T4") != NULL &&
                   total > 7 * GIB && total < 8 * GIB
               ? 0
               : 1;
}

static int case_log(void)
{
    CUdeviceptr address = 0;

    return use_device(NULL) == 0 && cuMemAlloc(&address, 5000) == 0 && cuMemFree(address) == 0 &&
                   cuMemFree(address) == CUDA_ERROR_INVALID_VALUE
               ? 0
               : 1;
}

static void test_the_nth_call(void **state)
{
    char errors[512];

    assert_int_equal(
        run_case("third", errors, sizeof(errors), "SPILLWAY_SIM_FAIL=cuMemCreate:3", NULL), 0);
    assert_string_equal(errors, "");
}

static void test_onwards_and_codes(void **state)
{
    char errors[512];

    assert_int_equal(run_case("onwards", errors, sizeof(errors),
                              "SPILLWAY_SIM_FAIL=cuMemCreate:2:NOT_READY,cuMemCreate:5+:999", NULL),
                     0);
    assert_int_equal(run_case("init", errors, sizeof(errors),
                              "SPILLWAY_SIM_FAIL=cuInit:1:CUDA_ERROR_NO_DEVICE", NULL),
                     0);
    assert_string_equal(errors, "");
}

static void test_at_run_time(void **state)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = 0;

    assert_int_equal(use_device(NULL), 0);
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemRelease(handle));
    assert_int_equal(spillway_sim_fail("cuMemCreate:2"), 0);
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemRelease(handle));
    FAILS(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemRelease(handle));
    assert_int_equal(spillway_sim_fail("cuMemCreate:1+"), 0);
    FAILS(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(spillway_sim_fail(NULL), 0);
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemRelease(handle));
}

static void test_bad_rules_are_named(void **state)
{
    char errors[1024];

    assert_int_equal(run_case("third", errors, sizeof(errors),
                              "SPILLWAY_SIM_FAIL=cuNoSuchThing:1,cuMemCreate:3,cuMemCreate:x",
                              NULL),
                     0);
    assert_non_null(strstr(errors, "SPILLWAY_SIM_FAIL=cuNoSuchThing:1: expected"));
    assert_non_null(strstr(errors, "SPILLWAY_SIM_FAIL=cuMemCreate:x: expected"));
    assert_null(strstr(errors, "cuMemCreate:3:"));
}

static void expect_complaint(const char *setting)
{
    char errors[1024];

    assert_int_equal(run_case("defaults", errors, sizeof(errors), setting, NULL), 0);
    assert_non_null(strstr(errors, setting));
    assert_non_null(strstr(errors, "; using the default"));
    assert_ptr_equal(strchr(errors, '\n'), errors + strlen(errors) - 1); /* one line */
}

static void test_bad_options_are_named(void **state)
{
    char errors[512];

    expect_complaint("SPILLWAY_SIM_MEMORY=lots");
    expect_complaint("SPILLWAY_SIM_MEMORY=8XiB");
    expect_complaint("SPILLWAY_SIM_MEMORY=99999999999TiB");
    expect_complaint("SPILLWAY_SIM_MEMORY=0");
    expect_complaint("SPILLWAY_SIM_DEVICES=0");
    expect_complaint("SPILLWAY_SIM_DEVICES=2x");
    expect_complaint("SPILLWAY_SIM_PROFILE=voodoo");
    expect_complaint("SPILLWAY_SIM_UNMAP=perhaps");
    expect_complaint("SPILLWAY_SIM_FREE_SYNC=perhaps");
    expect_complaint("SPILLWAY_SIM_SEED=-1");
    assert_int_equal(run_case("percent", errors, sizeof(errors), "SPILLWAY_SIM_PROFILE=t4-16g",
                              "SPILLWAY_SIM_MEMORY=50%", NULL),
                     0);
    assert_string_equal(errors, "");
}

static void test_log(void **state)
{
    char setting[128], errors[256], text[4096];
    FILE *file;
    size_t length;

    snprintf(setting, sizeof(setting), "SPILLWAY_SIM_LOG=%s", log_path);
    assert_int_equal(run_case("log", errors, sizeof(errors), setting, NULL), 0);
    file = fopen(log_path, "r");
    assert_non_null(file);
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    fclose(file);
    assert_non_null(strstr(text, " 1 cuInit = 0\n"));
    assert_non_null(strstr(text, "cuMemAlloc_v2 = 0 size=5000 -> 0x"));
    assert_non_null(strstr(text, "cuMemFree_v2 = 0 0x"));
    assert_non_null(strstr(text, "cuMemFree_v2 = 1 0x"));
    assert_int_equal(
        run_case("defaults", errors, sizeof(errors), "SPILLWAY_SIM_LOG=/nonexistent/log", NULL), 0);
    assert_non_null(strstr(errors, "SPILLWAY_SIM_LOG=/nonexistent/log: cannot be written"));
}

static int remove_log(void **state)
{
    return unlink(log_path);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"third", case_third},
        {"onwards", case_onwards},
        {"init", case_init_fails},
        {"defaults", case_defaults},
        {"percent", case_percent},
        {"log", case_log},
        {NULL, NULL},
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nth_call),          cmocka_unit_test(test_onwards_and_codes),
        cmocka_unit_test(test_at_run_time),           cmocka_unit_test(test_bad_rules_are_named),
        cmocka_unit_test(test_bad_options_are_named), cmocka_unit_test(test_log),
    };
    int fd, result = 0;

    if (is_case(argc, argv, cases, &result)) {
        return result;
    }
    fd = mkstemp(log_path);
    if (fd < 0) {
        return 1;
    }
    close(fd);
    return cmocka_run_group_tests(tests, NULL, remove_log);
}
