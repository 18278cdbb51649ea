/* Allocates while a stream is captured: in each mode of the capture, in each mode of the thread
 * that allocates, and by the thread that captures or another one. Prints the answers, and what
 * becomes of the capture. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>

#include "check.h"

enum { MODES = 3, BYTES = 1 << 20 };

static const struct {
    enum cudaStreamCaptureMode mode;
    const char *name;
} modes[MODES] = {{cudaStreamCaptureModeGlobal, "global"},
                  {cudaStreamCaptureModeThreadLocal, "thread-local"},
                  {cudaStreamCaptureModeRelaxed, "relaxed"}};
static bool pitched;

static void *allocate(void *own)
{
    enum cudaStreamCaptureMode mode = *(const enum cudaStreamCaptureMode *)own;
    void *block = NULL;
    size_t pitch;

    MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    SHOW(cudaGetErrorName,
         pitched ? cudaMallocPitch(&block, &pitch, BYTES, 2) : cudaMalloc(&block, BYTES));
    MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    (void)cudaGetLastError();
    return block;
}

int main(void)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < MODES * MODES * 4; i++) {
        int captured = i / 4 % MODES, own = i / 4 / MODES;
        enum cudaStreamCaptureMode mode = modes[own].mode;
        bool beside = i % 2 == 1;
        void *block = NULL;
        pthread_t thread;

        pitched = i / 2 % 2 == 1;
        printf("%s capture, %s thread, %s, mode %s:\n", modes[captured].name,
               beside ? "another" : "the same", pitched ? "pitched" : "plain", modes[own].name);
        MUST(cudaStreamBeginCapture(stream, modes[captured].mode));
        if (beside) {
            MUST(pthread_create(&thread, NULL, allocate, &mode));
            MUST(pthread_join(thread, &block));
        } else {
            block = allocate(&mode);
        }
        SHOW(cudaGetErrorName, cudaStreamEndCapture(stream, &graph));
        (void)cudaGetLastError();
        MUST(cudaFree(block));
        if (graph != NULL) {
            MUST(cudaGraphDestroy(graph));
            graph = NULL;
        }
    }
    return 0;
}
