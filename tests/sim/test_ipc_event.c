/* Events shared between processes. */
#include "cases.h"

static CUstream stream;

static CUevent new_event(unsigned int flags)
{
    CUevent event = NULL;

    OK(cuEventCreate(&event, flags));
    return event;
}

/* The other process: opens the event whose handle is in the environment, as text. */
static int open_event(void)
{
    CUipcEventHandle handle;
    CUevent event = NULL;
    const char *text = getenv("HANDLE");

    assert_int_equal(use_device(NULL), 0);
    for (size_t i = 0; i < sizeof(handle); i++) {
        unsigned int byte = 0;

        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        handle.reserved[i] = (char)byte;
    }
    OK(cuIpcOpenEventHandle(&event, handle));
    OK(cuEventQuery(event));
    OK(cuStreamWaitEvent(NULL, event, 0));
    OK(cuEventSynchronize(event));
    OK(cuEventRecord(event, NULL));
    OK(cuEventQuery(event));
    OK(cuCtxSynchronize());
    OK(cuEventDestroy(event));
    memset(&handle, 1, sizeof(handle));
    FAILS(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_INVALID_VALUE);
    return 0;
}

/* Enough that it takes a while where work takes time. */
static void submit_work(CUdeviceptr address)
{
    for (unsigned int i = 0; i < 50; i++) {
        OK(cuMemsetD32Async(address, i, MIB, stream));
    }
}

/* A record of a shared event is complete at once, made before or after it was shared. */
static void test_share(void **state)
{
    char text[2 * sizeof(CUipcEventHandle) + 8] = "HANDLE=", errors[4096];
    CUevent event = new_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    CUevent other = NULL;
    CUipcEventHandle handle;
    CUdeviceptr address = 0;

    OK(cuMemAlloc(&address, 4 * MIB));
    submit_work(address);
    OK(cuEventRecord(event, stream));
    OK(cuIpcGetEventHandle(&handle, event));
    OK(cuEventQuery(event));
    submit_work(address);
    OK(cuEventRecord(event, stream));
    OK(cuEventQuery(event));
    FAILS(cuIpcOpenEventHandle(&other, handle), CUDA_ERROR_INVALID_VALUE); /* not in the same */
    for (size_t i = 0; i < sizeof(handle); i++) {
        sprintf(text + 7 + 2 * i, "%02x", (unsigned char)handle.reserved[i]);
    }
    assert_int_equal(run_case("open_event", errors, sizeof(errors), text, (char *)NULL), 0);
    assert_string_equal(errors, "");
    OK(cuEventDestroy(event));
    OK(cuMemFree(address));
}

static void test_what_cannot_be_shared(void **state)
{
    CUevent plain = new_event(CU_EVENT_DISABLE_TIMING);
    CUevent event = new_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    CUipcEventHandle handle;

    FAILS(cuIpcGetEventHandle(&handle, plain), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuIpcGetEventHandle(NULL, event), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventDestroy(event));
    FAILS(cuIpcGetEventHandle(&handle, event), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy(plain));
}

static const struct test_case cases[] = {{"open_event", open_event}, {NULL, NULL}};

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_what_cannot_be_shared),
    };
    int result;

    if (is_case(argc, argv, cases, &result)) {
        return result;
    }
    if (use_device(NULL) != 0 || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
