#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>

struct fake_driver fake_driver;

#define fake fake_driver

/* ---- contexts ---- */

enum { STACK = 8 };

static _Thread_local CUcontext stack[STACK];
static _Thread_local size_t depth;

CUcontext fake_driver_context(size_t number)
{
    return (CUcontext)(uintptr_t)(0x1000 * (number + 1));
}

static size_t number_of(CUcontext context)
{
    return (uintptr_t)context / 0x1000 - 1;
}

void fake_driver_set_current(CUcontext context)
{
    depth = context != NULL ? 1 : 0;
    stack[0] = context;
}

CUcontext fake_driver_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

/* True if this call must fail. Counts down. */
static bool fails(enum spw_own_call call)
{
    if (fake.fail_call != call || fake.fail_count == 0 ||
        (fake.fail_after > 0 && fake.fail_after-- > 0)) {
        return false;
    }
    fake.fail_count--;
    return true;
}

/* The answer to a call that needs a current context. */
static CUresult in_context(void)
{
    CUcontext context = fake_driver_current();

    if (context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return fake.gone[number_of(context)] ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

static CUresult CUDAAPI get_current(CUcontext *ret_context)
{
    if (fails(SPW_CALL_cuCtxGetCurrent)) {
        return fake.fail_result;
    }
    *ret_context = fake_driver_current();
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI push_current(CUcontext context)
{
    if (fails(SPW_CALL_cuCtxPushCurrent_v2)) {
        return fake.fail_result;
    }
    if (fake.gone[number_of(context)]) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    fake.violations += depth == STACK;
    stack[depth++ % STACK] = context;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI pop_current(CUcontext *ret_context)
{
    if (depth == 0) {
        fake.violations++;
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *ret_context = stack[--depth];
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI synchronize(void)
{
    CUcontext context = fake_driver_current();
    CUresult result = in_context();

    if (fails(SPW_CALL_cuCtxSynchronize)) {
        return fake.fail_result;
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (fake.on_synchronize != NULL) {
        fake.on_synchronize(context);
    }
    fake.synchronized[number_of(context)] = true;
    fake_driver_complete(context);
    return CUDA_SUCCESS;
}

/* ---- events and streams ---- */

/* The event of a handle; NULL, a violation, when there is none. */
static struct fake_driver_event *find(CUevent handle)
{
    struct fake_driver_event *event = &fake.events[(uintptr_t)handle - 1];

    if (event->context == NULL) {
        fake.violations++;
        return NULL;
    }
    return event;
}

static CUresult CUDAAPI event_create(CUevent *ret_event, unsigned int flags)
{
    size_t i = 0;

    fake.violations += flags != CU_EVENT_DISABLE_TIMING;
    if (fails(SPW_CALL_cuEventCreate)) {
        return fake.fail_result;
    }
    if (in_context() != CUDA_SUCCESS) {
        return in_context();
    }
    while (i < FAKE_DRIVER_EVENTS && fake.events[i].context != NULL) {
        i++;
    }
    if (i == FAKE_DRIVER_EVENTS) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fake.events[i] = (struct fake_driver_event){.context = fake_driver_current()};
    *ret_event = (CUevent)(uintptr_t)(i + 1);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI event_destroy(CUevent handle)
{
    struct fake_driver_event *event = find(handle);

    if (event != NULL) {
        event->context = NULL;
    }
    return CUDA_SUCCESS;
}

/* An event is recorded in its own context only. */
static CUresult record(CUevent handle, CUcontext context, CUstream stream, enum spw_own_call call)
{
    struct fake_driver_event *event;

    if (fails(call)) {
        return fake.fail_result;
    }
    event = find(handle);
    if (event == NULL || event->context != context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    event->complete = false;
    event->recorded_for = context;
    event->recorded_on = stream;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI event_record(CUevent handle, CUstream stream)
{
    CUresult result = in_context();

    return result != CUDA_SUCCESS
               ? result
               : record(handle, fake_driver_current(), stream, SPW_CALL_cuEventRecord);
}

static CUresult CUDAAPI context_record_event(CUcontext context, CUevent handle)
{
    return fake.gone[number_of(context)] ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                         : record(handle, context, NULL, SPW_CALL_cuCtxRecordEvent);
}

static CUresult CUDAAPI event_query(CUevent handle)
{
    const struct fake_driver_event *event;

    if (fails(SPW_CALL_cuEventQuery)) {
        return fake.fail_result;
    }
    if (in_context() != CUDA_SUCCESS) {
        return in_context();
    }
    event = find(handle);
    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return event->complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult CUDAAPI stream_wait_event(CUstream stream, CUevent handle, unsigned int flags)
{
    fake.violations += flags != 0;
    if (fails(SPW_CALL_cuStreamWaitEvent)) {
        return fake.fail_result;
    }
    if (in_context() != CUDA_SUCCESS) {
        return in_context();
    }
    if (find(handle) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake.waiting = stream;
    fake.waited[fake.waited_count++ % FAKE_DRIVER_EVENTS] = handle;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI stream_is_capturing(CUstream stream, CUstreamCaptureStatus *ret_status)
{
    if (fake.capturing_result == CUDA_SUCCESS) {
        *ret_status = fake.capturing;
    }
    return fake.capturing_result;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

static size_t index_of(CUdeviceptr address)
{
    return (size_t)((address - FAKE_DRIVER_BASE) / FAKE_DRIVER_GRANULE);
}

static CUresult CUDAAPI device_get(CUdevice *ret_device, int ordinal)
{
    if (fails(SPW_CALL_cuDeviceGet)) {
        return fake.fail_result;
    }
    *ret_device = ordinal;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_attribute(int *ret_value, CUdevice_attribute name, CUdevice device)
{
    if (fails(SPW_CALL_cuDeviceGetAttribute)) {
        return fake.fail_result;
    }
    switch ((int)name) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        *ret_value = fake.supported;
        break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        *ret_value = fake.rdma;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *ret_value = fake.pci[0];
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *ret_value = fake.pci[1];
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *ret_value = fake.pci[2];
        break;
    default:
        *ret_value = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_granularity(size_t *ret_granule, const CUmemAllocationProp *prop,
                                        CUmemAllocationGranularity_flags option)
{
    if (fails(SPW_CALL_cuMemGetAllocationGranularity)) {
        return fake.fail_result;
    }
    *ret_granule = fake.no_granule ? 0 : fake.granule != 0 ? fake.granule : FAKE_DRIVER_GRANULE;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI reserve(CUdeviceptr *ret_address, size_t bytes, size_t alignment,
                                CUdeviceptr address, unsigned long long flags)
{
    if (fails(SPW_CALL_cuMemAddressReserve)) {
        return fake.fail_result;
    }
    fake.reserved++;
    fake.reserved_bytes += bytes;
    *ret_address = FAKE_DRIVER_BASE;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI unreserve(CUdeviceptr address, size_t bytes)
{
    fake.violations += fake.reserved == 0 || fake_driver_mapped_count() > 0;
    fake.reserved--;
    fake.reserved_bytes -= bytes;
    fake.violations += (fake.reserved == 0) != (fake.reserved_bytes == 0);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
                               const CUmemAllocationProp *prop, unsigned long long flags)
{
    size_t i = 0;

    if (fails(SPW_CALL_cuMemCreate)) {
        return fake.fail_result;
    }
    if (prop->allocFlags.gpuDirectRDMACapable && fake.rdma_result != CUDA_SUCCESS) {
        return fake.rdma_result;
    }
    while (i < FAKE_DRIVER_CHUNKS && fake.chunks[i]) {
        i++;
    }
    if (i == FAKE_DRIVER_CHUNKS) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fake.chunks[i] = true;
    fake.flagged[i] = prop->allocFlags.gpuDirectRDMACapable;
    fake.props[i] = *prop;
    *ret_handle = i + 1;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI release(CUmemGenericAllocationHandle handle)
{
    if (fails(SPW_CALL_cuMemRelease)) {
        return fake.fail_result;
    }
    fake.violations += !fake.chunks[handle - 1];
    fake.chunks[handle - 1] = false;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI map(CUdeviceptr address, size_t bytes, size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    size_t first = index_of(address), count = bytes / FAKE_DRIVER_GRANULE;

    if (fails(SPW_CALL_cuMemMap)) {
        return fake.fail_result;
    }
    for (size_t i = 0; i < FAKE_DRIVER_GRANULES; i++) {
        if (fake.mapped[i] != 0 && i < first + count && first < i + fake.mapped_count[i]) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    fake.violations += !fake.chunks[handle - 1] || offset != 0;
    fake.mapped[first] = handle;
    fake.mapped_count[first] = count;
    fake.accessible[first] = false;
    return CUDA_SUCCESS;
}

/* Walks the mappings that make up a range. False when it is not made of whole ones, or `ranges`
 * does not allow several. */
static bool walk(CUdeviceptr address, size_t bytes, enum fake_driver_range ranges,
                 void (*visit)(size_t index))
{
    size_t end = index_of(address + bytes), count = 0;

    for (size_t i = index_of(address); i < end; i += fake.mapped_count[i]) {
        if (fake.mapped[i] == 0 || i + fake.mapped_count[i] > end) {
            return false;
        }
        count++;
    }
    if (count > 1 && ranges == FAKE_RANGE_REFUSED) {
        return false;
    }
    for (size_t i = index_of(address), next; i < end; i = next) {
        next = i + fake.mapped_count[i];
        visit(i);
        if (ranges == FAKE_RANGE_FIRST_ONLY) {
            break;
        }
    }
    return true;
}

static void unmap_one(size_t i)
{
    fake.mapped[i] = 0;
    fake.accessible[i] = false;
}

static void give_access(size_t i)
{
    fake.accessible[i] = true;
}

static CUresult CUDAAPI unmap(CUdeviceptr address, size_t bytes)
{
    if (fails(SPW_CALL_cuMemUnmap)) {
        return fake.fail_result;
    }
    return walk(address, bytes, fake.unmap_range, unmap_one) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                                   size_t count)
{
    if (fails(SPW_CALL_cuMemSetAccess)) {
        return fake.fail_result;
    }
    fake.access_count = count;
    memcpy(fake.access, access, count * sizeof(*access));
    return walk(address, bytes, fake.access_range, give_access) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

/* ---- copies ---- */

static CUresult CUDAAPI stream_create(CUstream *ret_stream, unsigned int flags)
{
    size_t i = 0;

    if (fails(SPW_CALL_cuStreamCreate)) {
        *ret_stream = (CUstream)(uintptr_t)77; /* a driver may write what it likes */
        return fake.fail_result;
    }
    if (in_context() != CUDA_SUCCESS) {
        return in_context();
    }
    while (i < FAKE_DRIVER_STREAMS - 1 && fake.streams[i] != NULL) {
        i++;
    }
    fake.violations += flags != CU_STREAM_NON_BLOCKING || fake.streams[i] != NULL;
    fake.streams[i] = fake_driver_current();
    *ret_stream = (CUstream)(uintptr_t)(i + 1);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI stream_destroy(CUstream stream)
{
    fake.violations += fake.streams[(uintptr_t)stream - 1] == NULL;
    fake.streams[(uintptr_t)stream - 1] = NULL;
    return CUDA_SUCCESS;
}

/* Work on a stream that was created here needs its context. */
static CUresult on_stream(CUstream stream)
{
    size_t i = (uintptr_t)stream - 1;
    bool known = i < FAKE_DRIVER_STREAMS && fake.streams[i] != NULL;

    fake.violations += !known || fake.streams[i] != fake_driver_current();
    return in_context();
}

static CUresult CUDAAPI stream_query(CUstream stream)
{
    if (fails(SPW_CALL_cuStreamQuery)) {
        return fake.fail_result;
    }
    if (in_context() != CUDA_SUCCESS) {
        return in_context();
    }
    return fake.busy ? CUDA_ERROR_NOT_READY : on_stream(stream);
}

static CUresult CUDAAPI stream_synchronize(CUstream stream)
{
    return fails(SPW_CALL_cuStreamSynchronize) ? fake.fail_result : on_stream(stream);
}

/* The place of device memory, which must be mapped. */
static unsigned char *place_of(CUdeviceptr address, size_t bytes)
{
    fake.violations +=
        address < FAKE_DRIVER_BASE || index_of(address + bytes - 1) >= FAKE_DRIVER_GRANULES;
    return fake.content + (address - FAKE_DRIVER_BASE);
}

static CUresult CUDAAPI copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (fails(SPW_CALL_cuMemcpyAsync)) {
        return fake.fail_result;
    }
    if (!fake.forgets) {
        memmove(place_of(to, bytes), place_of(from, bytes), bytes);
    }
    fake.copies[fake.copy_count++ % FAKE_DRIVER_COPIES] =
        (struct fake_driver_copy){to, from, bytes, stream};
    return on_stream(stream);
}

static CUresult CUDAAPI read_content(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (fails(SPW_CALL_cuMemcpyDtoHAsync_v2)) {
        return fake.fail_result;
    }
    memcpy(to, place_of(from, bytes), bytes);
    return on_stream(stream);
}

static CUresult CUDAAPI write_content(CUdeviceptr to, const void *from, size_t bytes,
                                      CUstream stream)
{
    if (fails(SPW_CALL_cuMemcpyHtoDAsync_v2)) {
        return fake.fail_result;
    }
    memcpy(place_of(to, bytes), from, bytes);
    return on_stream(stream);
}

static CUresult CUDAAPI fill(CUdeviceptr to, unsigned int word, size_t count, CUstream stream)
{
    unsigned char *place = place_of(to, 4 * count);

    if (fails(SPW_CALL_cuMemsetD32Async)) {
        return fake.fail_result;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(place + 4 * i, &word, 4);
    }
    return on_stream(stream);
}

/* ---- page-locked memory ---- */

static CUresult CUDAAPI host_alloc(void **ret_memory, size_t bytes, unsigned int flags)
{
    if (fails(SPW_CALL_cuMemHostAlloc)) {
        return fake.fail_result;
    }
    if (in_context() != CUDA_SUCCESS) {
        return in_context();
    }
    fake.pinned++;
    fake.pinned_in = fake_driver_current();
    fake.pinned_flags = flags;
    *ret_memory = malloc(bytes);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI host_free(void *memory)
{
    if (fails(SPW_CALL_cuMemFreeHost)) {
        return fake.fail_result;
    }
    fake.violations += fake.pinned == 0;
    fake.pinned--;
    free(memory);
    return in_context();
}

static CUresult CUDAAPI host_address(CUdeviceptr *ret_address, void *memory, unsigned int flags)
{
    if (fails(SPW_CALL_cuMemHostGetDevicePointer_v2)) {
        return fake.fail_result;
    }
    fake.violations += flags != 0;
    *ret_address = (uintptr_t)memory + FAKE_DRIVER_PINNED;
    return in_context();
}

static CUresult CUDAAPI primary_state(CUdevice device, unsigned int *ret_flags, int *ret_active)
{
    if (fails(SPW_CALL_cuDevicePrimaryCtxGetState)) {
        return fake.fail_result;
    }
    *ret_flags = 0;
    *ret_active = fake.primary_active;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI primary_retain(CUcontext *ret_context, CUdevice device)
{
    if (fails(SPW_CALL_cuDevicePrimaryCtxRetain)) {
        return fake.fail_result;
    }
    fake.primary_retained++;
    *ret_context = fake_driver_context(FAKE_DRIVER_CONTEXTS - 1);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI primary_release(CUdevice device)
{
    fake.violations += fake.primary_retained == 0;
    fake.primary_retained--;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_version(int *ret_version)
{
    *ret_version = fake.version;
    return CUDA_SUCCESS;
}

/* ---- for tests ---- */

void fake_driver_fail(enum spw_own_call call, size_t after, size_t count, CUresult result)
{
    fake.fail_call = call;
    fake.fail_after = after;
    fake.fail_count = count;
    fake.fail_result = result;
}

void fake_driver_destroy(size_t number)
{
    CUcontext context = fake_driver_context(number);

    for (size_t i = 0; i < FAKE_DRIVER_EVENTS; i++) {
        if (fake.events[i].context == context) {
            fake.events[i].context = NULL;
        }
    }
    fake.gone[number] = true;
}

void fake_driver_remake(size_t number)
{
    fake.gone[number] = false;
}

void fake_driver_complete(CUcontext context)
{
    for (size_t i = 0; i < FAKE_DRIVER_EVENTS; i++) {
        if (context == NULL || fake.events[i].recorded_for == context) {
            fake.events[i].complete = true;
        }
    }
}

size_t fake_driver_chunk_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < FAKE_DRIVER_CHUNKS; i++) {
        count += fake.chunks[i];
    }
    return count;
}

size_t fake_driver_mapped_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < FAKE_DRIVER_GRANULES; i++) {
        count += fake.mapped[i] != 0;
    }
    return count;
}

size_t fake_driver_event_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < FAKE_DRIVER_EVENTS; i++) {
        count += fake.events[i].context != NULL;
    }
    return count;
}

struct spw_driver *fake_driver_reset(void)
{
    static unsigned char *content;

    if (content == NULL) {
        content = calloc(FAKE_DRIVER_GRANULES, FAKE_DRIVER_GRANULE);
    }
    memset(&fake, 0, sizeof(fake));
    fake.content = content;
    fake.supported = 1;
    fake.fail_call = SPW_CALL_COUNT;
    fake.driver = *spw_driver_absent();
    fake.driver.cuCtxGetCurrent = get_current;
    fake.driver.cuCtxPushCurrent_v2 = push_current;
    fake.driver.cuCtxPopCurrent_v2 = pop_current;
    fake.driver.cuCtxSynchronize = synchronize;
    fake.driver.cuCtxRecordEvent = context_record_event;
    fake.driver.cuEventCreate = event_create;
    fake.driver.cuEventDestroy_v2 = event_destroy;
    fake.driver.cuEventRecord = event_record;
    fake.driver.cuEventQuery = event_query;
    fake.driver.cuStreamWaitEvent = stream_wait_event;
    fake.driver.cuStreamIsCapturing = stream_is_capturing;
    fake.driver.cuThreadExchangeStreamCaptureMode = exchange_mode;
    fake.driver.cuDeviceGet = device_get;
    fake.driver.cuDeviceGetAttribute = get_attribute;
    fake.driver.cuMemGetAllocationGranularity = get_granularity;
    fake.driver.cuMemAddressReserve = reserve;
    fake.driver.cuMemAddressFree = unreserve;
    fake.driver.cuMemCreate = create;
    fake.driver.cuMemRelease = release;
    fake.driver.cuMemMap = map;
    fake.driver.cuMemUnmap = unmap;
    fake.driver.cuMemSetAccess = set_access;
    fake.driver.cuStreamCreate = stream_create;
    fake.driver.cuStreamDestroy_v2 = stream_destroy;
    fake.driver.cuStreamQuery = stream_query;
    fake.driver.cuStreamSynchronize = stream_synchronize;
    fake.driver.cuMemcpyAsync = copy;
    fake.driver.cuMemcpyDtoHAsync_v2 = read_content;
    fake.driver.cuMemcpyHtoDAsync_v2 = write_content;
    fake.driver.cuMemsetD32Async = fill;
    fake.driver.cuMemHostAlloc = host_alloc;
    fake.driver.cuMemFreeHost = host_free;
    fake.driver.cuMemHostGetDevicePointer_v2 = host_address;
    fake.driver.cuDevicePrimaryCtxGetState = primary_state;
    fake.driver.cuDevicePrimaryCtxRetain = primary_retain;
    fake.driver.cuDevicePrimaryCtxRelease_v2 = primary_release;
    fake.driver.cuDriverGetVersion = get_version;
    fake.driver.calls[0] = fake.calls;
    fake_driver_set_current(NULL);
    return &fake.driver;
}
