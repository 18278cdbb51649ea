/* Blocks in host memory at device addresses, as spilled blocks will be: are they right under
 * copies, memset, atomics and a matrix product? Prints "name: ok" or what was wrong, and figures.
 *
 * It asks the driver for what it maps and the runtime for kernels; it knows nothing of spillway. */
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const size_t BYTES = (size_t)64 << 20;
static const int SIDE = 1024; /* of the matrices */
static bool failed;

static void must(int result, const char *call)
{
    if (result != 0) {
        printf("%s: error %d\n", call, result);
        exit(1);
    }
}

static void verdict(const char *name, bool ok)
{
    printf("%s: %s\n", name, ok ? "ok" : "WRONG");
    failed = failed || !ok;
}

static CUdeviceptr map(CUmemLocationType type, int id)
{
    CUmemAllocationProp properties = {};
    CUmemAccessDesc access = {};
    CUmemGenericAllocationHandle chunk;
    CUdeviceptr address = 0;

    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = type;
    properties.location.id = id;
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    must(cuMemCreate(&chunk, BYTES, &properties, 0), "cuMemCreate");
    must(cuMemAddressReserve(&address, BYTES, 0, 0, 0), "cuMemAddressReserve");
    must(cuMemMap(address, BYTES, 0, chunk, 0), "cuMemMap");
    must(cuMemSetAccess(address, BYTES, &access, 1), "cuMemSetAccess");
    must(cuMemRelease(chunk), "cuMemRelease");
    return address;
}

__global__ void increment(unsigned *counter, unsigned long long *wide, float *sum)
{
    atomicAdd(counter, 1u);
    atomicMax(wide, (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(sum, 1.0f);
}

__global__ void multiply(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;

    for (int k = 0; k < n; k++) {
        sum += a[row * n + k] * b[k * n + column];
    }
    c[row * n + column] = sum;
}

__global__ void read_all(const uint4 *data, size_t count, unsigned *sink)
{
    unsigned sum = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * (size_t)blockDim.x) {
        uint4 word = data[i];
        sum ^= word.x ^ word.y ^ word.z ^ word.w;
    }
    if (sum == 0x12345) {
        *sink = sum;
    }
}

static void check_copies(CUdeviceptr host, CUdeviceptr device)
{
    std::vector<unsigned char> sent(BYTES), received(BYTES);

    for (size_t i = 0; i < BYTES; i++) {
        sent[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    must(cuMemcpyHtoD(host, sent.data(), BYTES), "cuMemcpyHtoD");
    must(cuMemcpyDtoD(device, host, BYTES), "cuMemcpyDtoD");
    must(cuMemsetD8(host, 0, BYTES), "cuMemsetD8");
    must(cuMemcpyDtoD(host, device, BYTES), "cuMemcpyDtoD");
    must(cuMemcpyDtoH(received.data(), host, BYTES), "cuMemcpyDtoH");
    verdict("copies", sent == received);
}

static void check_memset(CUdeviceptr host)
{
    std::vector<unsigned> words(BYTES / 4);
    bool same = true;

    must(cuMemsetD32(host, 0xabcd1234, BYTES / 4), "cuMemsetD32");
    must(cuMemcpyDtoH(words.data(), host, BYTES), "cuMemcpyDtoH");
    for (unsigned word : words) {
        same = same && word == 0xabcd1234;
    }
    verdict("memset", same);
}

static void check_atomics(CUdeviceptr host)
{
    struct {
        unsigned long long wide;
        unsigned counter;
        float sum;
    } result;

    must(cuMemsetD8(host, 0, sizeof(result)), "cuMemsetD8");
    increment<<<256, 256>>>((unsigned *)(host + 8), (unsigned long long *)host,
                            (float *)(host + 12));
    must(cudaDeviceSynchronize(), "increment");
    must(cuMemcpyDtoH(&result, host, sizeof(result)), "cuMemcpyDtoH");
    verdict("atomics", result.counter == 65536 && result.wide == 65535 && result.sum == 65536.0f);
}

/* Multiplies operands in host-backed and in device memory: the results must be equal bit for
 * bit. */
static void check_product(CUdeviceptr host, CUdeviceptr device)
{
    const size_t bytes = (size_t)SIDE * SIDE * sizeof(float);
    std::vector<float> numbers((size_t)SIDE * SIDE), first(numbers.size()), second(numbers.size());
    dim3 threads(16, 16), blocks(SIDE / 16, SIDE / 16);

    for (size_t i = 0; i < numbers.size(); i++) {
        numbers[i] = (float)(i * 2654435761u % 2000) / 1000.0f - 1.0f;
    }
    for (CUdeviceptr base : {host, device}) {
        must(cuMemcpyHtoD(base, numbers.data(), bytes), "cuMemcpyHtoD");
        must(cuMemcpyHtoD(base + bytes, numbers.data(), bytes), "cuMemcpyHtoD");
        multiply<<<blocks, threads>>>((float *)base, (float *)(base + bytes),
                                      (float *)(base + 2 * bytes), SIDE);
        must(cudaDeviceSynchronize(), "multiply");
        must(cuMemcpyDtoH(base == host ? first.data() : second.data(), base + 2 * bytes, bytes),
             "cuMemcpyDtoH");
    }
    verdict("matrix product", memcmp(first.data(), second.data(), bytes) == 0 && first[1] != 0);
}

static void show_bandwidth(CUdeviceptr host, CUdeviceptr device)
{
    cudaEvent_t begin, end;
    unsigned *sink;
    float ms;

    must(cudaMalloc(&sink, 4), "cudaMalloc");
    must(cudaEventCreate(&begin), "cudaEventCreate");
    must(cudaEventCreate(&end), "cudaEventCreate");
    for (CUdeviceptr base : {host, device}) {
        read_all<<<2048, 256>>>((const uint4 *)base, BYTES / 16, sink);
        must(cudaEventRecord(begin), "cudaEventRecord");
        for (int i = 0; i < 5; i++) {
            read_all<<<2048, 256>>>((const uint4 *)base, BYTES / 16, sink);
        }
        must(cudaEventRecord(end), "cudaEventRecord");
        must(cudaEventSynchronize(end), "cudaEventSynchronize");
        must(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        printf("kernel reads %s memory: %.1f GB/s\n", base == host ? "host" : "device",
               5.0 * BYTES / (ms * 1e6));
    }
}

int main()
{
    int node = -1;
    CUdevice device;

    must(cudaFree(0), "cudaFree");
    must(cuCtxGetDevice(&device), "cuCtxGetDevice");
    must(cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device), "NUMA node");

    CUdeviceptr in_host = map(CU_MEM_LOCATION_TYPE_HOST_NUMA, node < 0 ? 0 : node);
    CUdeviceptr in_device = map(CU_MEM_LOCATION_TYPE_DEVICE, device);

    check_copies(in_host, in_device);
    check_memset(in_host);
    check_atomics(in_host);
    check_product(in_host, in_device);
    show_bandwidth(in_host, in_device);
    return failed;
}
