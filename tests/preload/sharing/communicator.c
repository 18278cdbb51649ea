/* A program that makes and destroys a communicator of two ranks with the NCCL that it finds. The
 * other rank never comes: the simulated NCCL does not wait for it. Prints NCCL's answers. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "../check.h"

/* As nccl.h has it. */
struct unique_id {
    char content[128];
};

static void *find(const char *name)
{
    static void *library;

    library = library != NULL ? library : dlopen("libnccl.so.2", RTLD_NOW);
    HOLD(library != NULL && dlsym(library, name) != NULL);
    return dlsym(library, name);
}

int main(void)
{
    int (*get_id)(struct unique_id *) =
        (int (*)(struct unique_id *))(uintptr_t)find("ncclGetUniqueId");
    int (*init)(void **, int, struct unique_id, int) =
        (int (*)(void **, int, struct unique_id, int))(uintptr_t)find("ncclCommInitRank");
    int (*destroy)(void *) = (int (*)(void *))(uintptr_t)find("ncclCommDestroy");
    struct unique_id id;
    void *communicator = NULL;

    MUST(get_id(&id));
    printf("made: %d\n", init(&communicator, 2, id, 0));
    printf("destroyed: %d\n", destroy(communicator));
    return 0;
}
