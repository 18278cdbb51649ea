/* A native cache frees its unused memory before anything is spilled. No request of it is refused
 * twice, and no other request is refused. Made for a device of 64 MiB; prints how often each
 * allocation was refused.
 *
 *     native_cache            a cache that asks again
 *     native_cache once       one that does not, while a private pool is open */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

void *native_allocate(size_t bytes, int *ret_refusals);
void *native_allocate_once(size_t bytes, int *ret_refusals);
void native_keep(void *address);

static void *allocate(const char *what, size_t mib)
{
    int refusals;
    void *address = native_allocate(mib * MIB, &refusals);

    printf("%s: %s after %d refusals\n", what, address != NULL ? "had" : "not had", refusals);
    return address;
}

static void allocate_once(const char *what, size_t mib)
{
    int refusals;
    void *address = native_allocate_once(mib * MIB, &refusals);

    printf("%s: %s\n", what, address != NULL ? "had" : "not had");
}

int main(int argc, char **argv)
{
    void *mine = NULL;

    if (argc > 1) {
        allocate_once("first", 40);
        allocate_once("beyond the device", 44);
        allocate_once("and again", 44);
        return 0;
    }
    native_keep(allocate("first", 40));
    (void)allocate("into the cache's place", 40);
    (void)allocate("beyond the device", 44);
    (void)allocate("and again", 10);
    printf("another caller: %d\n", (int)cudaMalloc(&mine, (size_t)20 * MIB));
    return 0;
}
