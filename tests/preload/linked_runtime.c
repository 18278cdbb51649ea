/* Does what NVIDIA's CUDA runtime does that is linked into a program: it asks the driver for a
 * private table, and gives up. */
#include <cuda.h>

#include "check.h"

int main(void)
{
    static const CUuuid any = {{1, 2, 3}};
    const void *table = NULL;

    MUST(cuInit(0));
    printf("%d\n", (int)cuGetExportTable(&table, &any));
    return 0;
}
