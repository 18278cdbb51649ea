/* Changes its folder and asks for more memory than the device has, for test_folders.py.
 *
 *     wanders before|after FOLDER    goes there before, or after, CUDA is initialised
 *     wanders removes FOLDER         before, and removes the folder in which it started
 */
#include <cuda.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { BLOCKS = 24, BYTES = 4 << 20 };

int main(int argc, char **argv)
{
    char start[4096];
    CUcontext context;
    CUdeviceptr block;

    HOLD(argc == 3);
    if (strcmp(argv[1], "before") == 0) {
        MUST(chdir(argv[2]));
    }
    if (strcmp(argv[1], "removes") == 0) {
        HOLD(getcwd(start, sizeof(start)) != NULL);
        MUST(chdir(argv[2]));
        MUST(rmdir(start));
    }
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(chdir(argv[2]));
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemAlloc(&block, BYTES));
        MUST(cuMemsetD8(block, i, BYTES));
    }
    printf("done\n");
    return 0;
}
