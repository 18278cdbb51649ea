/* An ordinary CUDA program; test_runtime_nvcc.sh compiles and runs it on the simulated GPU. */
#include <cstdint>
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

__constant__ int constant_words[4];
__device__ uint32_t total;

/* The simulator knows these two by name and gives them the effect of their bodies. */
extern "C" __global__ void spw_fill(uint32_t *p, size_t words, uint32_t value)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        p[i] = value;
    }
}

extern "C" __global__ void spw_add(uint32_t *p, size_t words, uint32_t value)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        p[i] += value;
    }
}

template <typename T> __global__ void scale(T *p, T factor)
{
    p[threadIdx.x] *= factor;
}

struct Numbers {
    double a[600];
    short b;
};

template <typename T> __global__ void pick(char c, Numbers numbers, short b, T *p)
{
    p[threadIdx.x] = c + b + numbers.b + numbers.a[threadIdx.x];
}

static int failures;

static void expect(bool right, const char *what)
{
    if (!right) {
        std::printf("wrong: %s (%s)\n", what, cudaGetErrorName(cudaGetLastError()));
        failures++;
    }
}

/* The parameters of a kernel as the compiler wrote them. */
static void check_params()
{
    static const size_t places[][2] = {{0, 1}, {8, sizeof(Numbers)}, {8 + sizeof(Numbers), 2},
                                       {16 + sizeof(Numbers), sizeof(float *)}};
    size_t offset = 0, size = 0;

    for (size_t i = 0; i < 4; i++) {
        expect(cudaFuncGetParamInfo((const void *)pick<float>, i, &offset, &size) == cudaSuccess &&
                   offset == places[i][0] && size == places[i][1],
               "the place of a parameter");
    }
    expect(cudaFuncGetParamInfo((const void *)pick<float>, 4, &offset, &size) ==
               cudaErrorInvalidValue,
           "the number of parameters");
    expect(cudaFuncGetParamInfo((const void *)spw_fill, 1, &offset, &size) == cudaSuccess &&
               offset == 8 && size == 8,
           "the place of a built-in kernel's parameter");
}

int main()
{
    const size_t words = 100000;
    std::vector<uint32_t> back(words);
    uint32_t *p = nullptr;
    cudaStream_t stream;

    expect(cudaMalloc(&p, words * sizeof(*p)) == cudaSuccess, "cudaMalloc");
    spw_fill<<<32, 256>>>(p, words, 40);
    expect(cudaGetLastError() == cudaSuccess, "launch on the default stream");
    expect(cudaStreamCreate(&stream) == cudaSuccess, "cudaStreamCreate");
    expect(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    spw_add<<<dim3(8, 2), dim3(64, 2), 1024, stream>>>(p, words, 2);
    scale<float><<<1, 32, 0, stream>>>(reinterpret_cast<float *>(p), 2.0f);
    expect(cudaMemcpyAsync(back.data(), p, words * sizeof(*p), cudaMemcpyDeviceToHost, stream) ==
               cudaSuccess,
           "cudaMemcpyAsync");
    expect(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
    expect(back[0] == 42 && back[words - 1] == 42, "kernels with effects");

    scale<float><<<1, 0, 0, stream>>>(reinterpret_cast<float *>(p), 2.0f);
    expect(cudaGetLastError() == cudaErrorInvalidConfiguration, "a block without threads");

    int constants[4] = {1, 2, 3, 4};
    int constants_back[4] = {0};
    expect(cudaMemcpyToSymbol(constant_words, constants, sizeof(constants)) == cudaSuccess,
           "cudaMemcpyToSymbol");
    expect(cudaMemcpyFromSymbol(constants_back, constant_words, sizeof(constants)) == cudaSuccess,
           "cudaMemcpyFromSymbol");
    expect(constants_back[3] == 4, "a constant");
    size_t size = 0;
    expect(cudaGetSymbolSize(&size, total) == cudaSuccess && size == 4, "cudaGetSymbolSize");

    check_params();
    cudaFuncAttributes attributes;
    expect(cudaFuncGetAttributes(&attributes, scale<float>) == cudaSuccess,
           "cudaFuncGetAttributes");
    int blocks = 0;
    expect(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, spw_add, 128, 0) == cudaSuccess &&
               blocks > 0,
           "occupancy");
    expect(cudaFree(p) == cudaSuccess, "cudaFree");
    expect(cudaStreamDestroy(stream) == cudaSuccess, "cudaStreamDestroy");
    std::printf("%d wrong\n", failures);
    return failures != 0;
}
