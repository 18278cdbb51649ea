/* CUDA_VISIBLE_DEVICES: the list by itself, and what a program sees. */
#include "cases.h"

#include "sim/driver/core/control.h"
#include "sim/driver/core/visible.h"

#define COUNT     4
#define SHARED_FD 100

/* "20": devices 2 and 0, in this order. */
static const char *visible(const char *list)
{
    static char text[COUNT + 1];
    int indices[COUNT];
    int count = sim_visible_devices(list, COUNT, indices);

    for (int i = 0; i < count; i++) {
        text[i] = (char)('0' + indices[i]);
    }
    text[count] = '\0';
    return text;
}

static void test_indices(void **state)
{
    assert_string_equal(visible(NULL), "0123");
    assert_string_equal(visible("0"), "0");
    assert_string_equal(visible("2,1"), "21");
    assert_string_equal(visible("3, 0 ,1"), "301");
    assert_string_equal(visible("1gpu2,2ampere"), "12");
}

/* The list ends before the first entry that is no device. */
static void test_invalid_entries(void **state)
{
    assert_string_equal(visible(""), "");
    assert_string_equal(visible("NoDevFiles"), "");
    assert_string_equal(visible("-1"), "");
    assert_string_equal(visible("0,2,-1,1"), "02");
    assert_string_equal(visible("0,4,1"), "0");
    assert_string_equal(visible("1,,2"), "1");
    assert_string_equal(visible("2,"), "2");
    assert_string_equal(visible("0,99999999999999999999,1"), "0");
    assert_string_equal(visible("MIG-GPU-a0/1/0"), "");
}

static void test_repeated_device(void **state)
{
    assert_string_equal(visible("0,1,0"), "");
    assert_string_equal(visible("GPU-a1,GPU-a173"), "");
}

static void test_uuids(void **state)
{
    char list[2 * SIM_UUID_TEXT + 1];

    sim_uuid_text(3, list);
    assert_string_equal(list, "GPU-a3737069-6c6c-7761-792d-73696d2d6770");
    assert_string_equal(visible(list), "3");
    strcat(list, ",");
    sim_uuid_text(1, list + strlen(list));
    assert_string_equal(visible(list), "31");
    strcat(list, "0"); /* longer than any */
    assert_string_equal(visible(list), "3");
    assert_string_equal(visible("GPU-A2,GPU-a07370"), "20");
    assert_string_equal(visible("GPU-a"), ""); /* of which? */
    assert_string_equal(visible("GPU-"), "");
    assert_string_equal(visible("GPU-a2,0"), "2"); /* no mixture */
    assert_string_equal(visible("0,GPU-a2"), "0");
}

/* Devices 2 and 0 of three; monitoring still shows all. */
static int see_two(void)
{
    struct spillway_sim_device device;
    unsigned char expected[16];
    CUdevice found = -1;
    CUdeviceptr address = 0;
    CUcontext ctx = NULL;
    char bus[32];
    CUuuid uuid;
    int count = 0;

    assert_int_equal(spillway_sim_device(1, &device), 0); /* before cuInit */
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    assert_int_equal(count, 2);
    OK(cuDeviceGetUuid(&uuid, 0));
    sim_uuid_of(2, expected);
    assert_memory_equal(uuid.bytes, expected, sizeof(expected));
    assert_int_equal(spillway_sim_device(2, &device), 0);
    assert_memory_equal(device.uuid, expected, sizeof(expected));
    OK(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
    assert_string_equal(bus, "0000:12:00.0");
    assert_int_equal(device.pci_bus, 0x12);
    OK(cuDeviceGetByPCIBusId(&found, "0000:10:00.0"));
    assert_int_equal(found, 1);
    FAILS(cuDeviceGetByPCIBusId(&found, "0000:11:00.0"), CUDA_ERROR_INVALID_DEVICE);
    FAILS(cuDeviceGet(&found, 2), CUDA_ERROR_INVALID_DEVICE);

    OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuCtxSetCurrent(ctx));
    OK(cuMemAlloc(&address, 4 * MIB));
    assert_int_equal(spillway_sim_device(2, &device), 0);
    assert_int_equal(device.used_bytes, 4 * MIB);
    assert_int_equal(spillway_sim_device(1, &device), 0);
    assert_int_equal(device.used_bytes, 0);
    assert_int_equal(spillway_sim_device(3, &device), -1);
    return 0;
}

static int see_none(void)
{
    int count = -1;

    FAILS(cuInit(0), CUDA_ERROR_NO_DEVICE);
    FAILS(cuInit(0), CUDA_ERROR_NO_DEVICE);
    FAILS(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    return 0;
}

/* A chunk of the machine's device 1, which is device 0 here, for another program. */
static int export(void)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = 0;
    int fd = -1;

    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_int_equal(use_device(NULL), 0);
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_int_equal(dup2(fd, SHARED_FD), SHARED_FD); /* dup2 leaves it open across exec */
    setenv("CUDA_VISIBLE_DEVICES", "2,0,1", 1);
    execl("/proc/self/exe", "test", "import", (char *)NULL);
    return 127;
}

/* The other program sees more devices. */
static int import(void)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop;

    assert_int_equal(use_device(NULL), 0);
    OK(cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)SHARED_FD,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    OK(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
    assert_int_equal(prop.location.id, 2);
    return 0;
}

static const struct test_case cases[] = {{"see_two", see_two},
                                         {"see_none", see_none},
                                         {"export", export},
                                         {"import", import},
                                         {NULL, NULL}};

static void check_case(const char *name, const char *setting)
{
    char errors[4096];

    assert_int_equal(
        run_case(name, errors, sizeof(errors), "SPILLWAY_SIM_DEVICES=3", setting, (char *)NULL), 0);
    assert_string_equal(errors, "");
}

static void test_programs(void **state)
{
    check_case("see_two", "CUDA_VISIBLE_DEVICES=2,0");
    check_case("see_none", "CUDA_VISIBLE_DEVICES=");
    check_case("see_none", "CUDA_VISIBLE_DEVICES=7");
    check_case("export", "CUDA_VISIBLE_DEVICES=1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_indices),         cmocka_unit_test(test_invalid_entries),
        cmocka_unit_test(test_repeated_device), cmocka_unit_test(test_uuids),
        cmocka_unit_test(test_programs),
    };
    int result;

    if (is_case(argc, argv, cases, &result)) {
        return result;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
