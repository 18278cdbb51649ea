/* One line is printed for programs that bring an unsuitable PyTorch or CUDA runtime, and for
 * unknown profiles and counts. */
#include "cases.h"

#include <dlfcn.h>

static void load(const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", getenv("LOADED_LIBS"), name);
    assert_non_null(dlopen(path, RTLD_NOW));
}

static int nothing(void)
{
    return 0;
}

static int initialise(void)
{
    OK(cuInit(0));
    return 0;
}

static int old_runtime(void)
{
    load("libcudart.so.12");
    return initialise();
}

/* It looks functions up, does not like the driver, and gives up. */
static int old_runtime_looks_up(void)
{
    void *function = NULL;

    load("libcudart.so.12");
    OK(cuGetProcAddress("cuDriverGetVersion", &function, 12000, 0, NULL));
    return initialise();
}

/* Ends twice: a worker that it forked, and itself. */
static int cpu_torch(void)
{
    int status = 1;
    pid_t worker;

    load("libtorch_cpu.so");
    worker = fork();
    if (worker == 0) {
        exit(0);
    }
    assert_int_equal(waitpid(worker, &status, 0), worker);
    return status;
}

static int cpu_torch_beside_cuda(void)
{
    load("libtorch_cpu.so");
    return initialise();
}

static int cuda_torch(void)
{
    load("libtorch_cpu.so");
    load("libtorch_cuda.so");
    return 0;
}

/* The name of the first device, and how many there are, as exit code. */
static int is_an_h100(void)
{
    char name[64] = "";

    OK(cuInit(0));
    OK(cuDeviceGetName(name, sizeof(name), 0));
    return strstr(name, "H100") != NULL ? 0 : 1;
}

static int count_devices(void)
{
    int count = 0;

    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    return count;
}

static const struct test_case cases[] = {
    {"nothing", nothing},
    {"initialise", initialise},
    {"old_runtime", old_runtime},
    {"old_runtime_looks_up", old_runtime_looks_up},
    {"cpu_torch", cpu_torch},
    {"cpu_torch_beside_cuda", cpu_torch_beside_cuda},
    {"cuda_torch", cuda_torch},
    {"is_an_h100", is_an_h100},
    {"count_devices", count_devices},
    {NULL, NULL},
};

/* The case ends with this code and says nothing, or one line with `first` and `second` in it. */
static void check(const char *name, const char *setting, int code, const char *first,
                  const char *second)
{
    char errors[4096];

    assert_int_equal(run_case(name, errors, sizeof(errors), setting, (char *)NULL), code);
    if (first == NULL) {
        assert_string_equal(errors, "");
        return;
    }
    print_message("%s", errors);
    assert_non_null(strstr(errors, "spillway sim: "));
    assert_non_null(strstr(errors, first));
    assert_non_null(strstr(errors, second));
    assert_string_equal(strchr(errors, '\n'), "\n");
}

#define UNCHANGED "SPILLWAY_TEST=1"

static void test_runtime_of_another_cuda(void **state)
{
    check("initialise", UNCHANGED, 0, NULL, NULL);
    check("old_runtime", UNCHANGED, 0, "loaded_libs/libcudart.so.12, of CUDA 12",
          "built for CUDA 13");
    check("old_runtime_looks_up", UNCHANGED, 0, "loaded_libs/libcudart.so.12", "built for CUDA 13");
}

static void test_torch_without_cuda(void **state)
{
    check("nothing", UNCHANGED, 0, NULL, NULL);
    check("cpu_torch", UNCHANGED, 0, "loaded_libs/libtorch_cpu.so", "built for CUDA 13");
    check("cpu_torch_beside_cuda", UNCHANGED, 0, NULL, NULL);
    check("cuda_torch", UNCHANGED, 0, NULL, NULL);
}

static void test_profiles(void **state)
{
    const char *list = "a name that spillway sim --profile list prints; using the default";

    check("is_an_h100", "SPILLWAY_SIM_PROFILE=h100-80g", 0, NULL, NULL);
    check("is_an_h100", "SPILLWAY_SIM_PROFILE=h100", 0, NULL, NULL);
    check("is_an_h100", "SPILLWAY_SIM_PROFILE=h100-81g", 0, list, "expected h100-80g, or a name");
    check("is_an_h100", "SPILLWAY_SIM_PROFILE=T4-15G", 0, list, "expected t4-16g, or a name");
    check("is_an_h100", "SPILLWAY_SIM_PROFILE=RTX 409", 0, list, "expected rtx4090-24g, or a name");
    check("is_an_h100", "SPILLWAY_SIM_PROFILE=voodoo2", 0, list, "expected a name");
}

static void test_counts_of_devices(void **state)
{
    check("count_devices", "SPILLWAY_SIM_DEVICES=64", 64, NULL, NULL);
    check("count_devices", "SPILLWAY_SIM_DEVICES=1000", 1, "SPILLWAY_SIM_DEVICES=1000",
          "out of range (expected 1 to 64); using the default");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runtime_of_another_cuda),
        cmocka_unit_test(test_torch_without_cuda),
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_counts_of_devices),
    };
    int result;

    if (is_case(argc, argv, cases, &result)) {
        return result;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
