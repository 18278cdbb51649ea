/* Kernels of C++: what their names say of the parameters, and launches checked by it. */
#include "work.h"

#include <dlfcn.h>

#include "sim/driver/control.h"
#include "sim/driver/declaration.h"

/* "1:1 3:2": one word in parameter 1, two in parameter 3; "?" when the name says nothing. */
static const char *addresses(const char *name)
{
    static char text[256];
    struct sim_declared *declared = NULL;
    size_t count = 0, used = 0;

    if (!sim_declaration_read(name, &declared, &count)) {
        return "?";
    }
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%zu:%zu", i > 0 ? " " : "",
                                 declared[i].param, declared[i].words);
    }
    free(declared);
    return text;
}

static void test_names(void **state)
{
    assert_string_equal(addresses("_Z5scalePfi"), "0:1");                  /* scale(float*, int) */
    assert_string_equal(addresses("_Z5scaleiPKfS0_dPS0_"), "1:1 2:1 4:1"); /* float const** last */
    assert_string_equal(addresses("_Z5countjlyb"), "");                    /* numbers only */
    assert_string_equal(addresses("_Z4nonev"), "");                        /* no parameters */
    /* mul<float>(float*, Metadata<2, (Kind)3>, float const*) */
    assert_string_equal(addresses("_Z3mulIfEvPT_8MetadataILi2EL4Kind3EEPKS0_"), "0:1 2:1");
    assert_string_equal(addresses("_Z3mul8MetadataILi2EE"), "?"); /* a struct only */
    /* vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, std::array<char*, 3ul>> */
    assert_string_equal(addresses("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunct"
                                  "or_addIfEESt5arrayIPcLm3EEEEviT0_T1_"),
                        "2:3");
    /* elementwise_kernel<128, 2, a lambda>(int, the lambda) */
    assert_string_equal(addresses("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_"
                                  "impl_nocastINS0_15CUDAFunctor_addIfEEEEvRNS_18TensorIteratorBas"
                                  "eERKT_EUliE_EEviT1_"),
                        "?");
    assert_string_equal(addresses("_Z3fooPFviE"), "?"); /* a pointer to a function */
    assert_string_equal(addresses("_Z1fSt5arrayIfLm3EEPc"), "1:1");
}

static void test_other_names(void **state)
{
    assert_string_equal(addresses("scale"), "?");
    assert_string_equal(addresses(""), "?");
    assert_string_equal(addresses("_Z"), "?");
    assert_string_equal(addresses("_Zwrong"), "?");
    assert_string_equal(addresses("_ZN2at6native3sumE"), "?"); /* a variable */
}

/* A pointer that points nowhere is seen; what is in a struct is not looked at. */
static void test_launches(void **state)
{
    const struct work *work = *state;
    struct spillway_sim_layouts before, after;
    struct {
        CUdeviceptr stale[2];
    } metadata;
    CUdeviceptr address = 0, end, gone = 0;
    CUfunction function = NULL;
    void *params[] = {&address, &metadata, &end};

    OK(cuModuleGetFunction(&function, work->module, "_Z3mulIfEvPT_8MetadataILi2EL4Kind3EEPKS0_"));
    OK(cuMemAlloc(&gone, 4 * MIB));
    OK(cuMemFree(gone));
    OK(cuMemAlloc(&address, 4 * MIB));
    if (gone == address) {
        gone += 64 * MIB;
    }
    metadata.stale[0] = metadata.stale[1] = gone;
    end = address + 4 * MIB;
    spillway_sim_layouts(&before);
    OK(launch(function, NULL, params));
    OK(cuCtxSynchronize());
    OK(launch(work->other, NULL, NULL)); /* not a name of C++ */
    OK(launch_fill(work, NULL, address, 4, 1));
    spillway_sim_layouts(&after);
    assert_int_equal(after.name, before.name + 1);
    assert_int_equal(after.unknown, before.unknown + 1);
    assert_int_equal(after.builtin, before.builtin + 1);
    assert_int_equal(after.ptx, before.ptx);

    OK(cuMemFree(address));
    OK(launch(function, NULL, params));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Every word of an array of pointers counts. */
static void test_arrays(void **state)
{
    const struct work *work = *state;
    CUdeviceptr address = 0;
    CUfunction function = NULL;
    struct {
        CUdeviceptr words[3];
    } array;
    int count = 5;
    char nothing = 0;
    void *params[] = {&count, &nothing, &array};

    OK(cuModuleGetFunction(&function, work->module, "_Z6vectorILi4E3AddSt5arrayIPcLm3EEEviT0_T1_"));
    OK(cuMemAlloc(&address, 4 * MIB));
    array.words[0] = address;
    array.words[1] = 0;
    array.words[2] = address + 4 * MIB - 1;
    OK(launch(function, NULL, params));
    OK(cuCtxSynchronize());
    array.words[2] += 2 * MIB;
    OK(launch(function, NULL, params));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_other_names),
        WORK_TEST(test_launches),
        WORK_TEST(test_arrays),
    };

    if (dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL) == NULL) {
        return 77;
    }
    sim_declaration_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
