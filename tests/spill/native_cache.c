/* A native cache frees its unused memory before anything is spilled. No request of it is refused
 * twice, and no other request is refused. Made for a device of 64 MiB; prints how often each
 * allocation was refused. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

void *native_allocate(size_t bytes, int *ret_refusals);
void native_keep(void *address);

static void *allocate(const char *what, size_t mib)
{
    int refusals;
    void *address = native_allocate(mib * MIB, &refusals);

    printf("%s: %s after %d refusals\n", what, address != NULL ? "had" : "not had", refusals);
    return address;
}

int main(void)
{
    void *mine = NULL;

    native_keep(allocate("first", 40));
    (void)allocate("into the cache's place", 40);
    (void)allocate("beyond the device", 44);
    (void)allocate("and again", 10);
    printf("another caller: %d\n", (int)cudaMalloc(&mine, (size_t)20 * MIB));
    return 0;
}
