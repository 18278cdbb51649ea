/* Unusual calls of cuGetProcAddress and of dlsym on the driver. Prints results and whether a
 * function was returned, but no addresses, so the output is the same with and without spillway. */
#include <cuda.h>
#include <dlfcn.h>

#include "check.h"

typedef CUresult get_v1(const char *, void **, int, cuuint64_t);
typedef CUresult get_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static get_v1 *first;
static get_v2 *second;

struct question {
    const char *name;
    int version;
    cuuint64_t flags;
};

static const struct question questions[] = {
    {"", 0, 0},
    {"", 12000, 0},
    {"cuMemAlloc", 3020, 0},
    {"cuMemAlloc", 2000, 0},
    {"cuMemAlloc", 1000, 0},
    {"cuMemAlloc", 99000, 0},
    {"cuMemAlloc_v2", 12000, 0},
    {"cuMemAllocAsync", 11020, 0},
    {"cuMemAllocAsync", 11020, 1},
    {"cuMemAllocAsync", 11020, 2},
    {"cuMemAllocAsync", 11010, 0},
    {"cuMemAllocAsync", 11020, 77},
    {"cuMemFree", 12000, 2},
    {"cuGetProcAddress", 11030, 0},
    {"cuGetProcAddress", 12000, 0},
    {"cuNoSuchFunction", 12000, 0},
    {"cudaMalloc", 12000, 0},
    {"malloc", 12000, 0},
};

static void ask(const struct question *question)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)99;
    void *function = (void *)&questions;

    printf("\"%s\" %d %d\n", question->name, question->version, (int)question->flags);
    printf("  v1: %d", first(question->name, &function, question->version, question->flags));
    printf(" %s\n", function == NULL ? "NULL" : function == &questions ? "untouched" : "function");

    function = (void *)&questions;
    printf("  v2: %d",
           second(question->name, &function, question->version, question->flags, &status));
    printf(" %s status %d\n",
           function == NULL         ? "NULL"
           : function == &questions ? "untouched"
                                    : "function",
           (int)status);

    function = (void *)&questions;
    printf("  v2, no status: %d",
           second(question->name, &function, question->version, question->flags, NULL));
    printf(" %s\n", function == NULL ? "NULL" : function == &questions ? "untouched" : "function");
    printf("  v2, no place: %d\n",
           second(question->name, NULL, question->version, question->flags, &status));
    printf("  v1, no place: %d\n", first(question->name, NULL, question->version, question->flags));
}

int main(void)
{
    static const char *const names[] = {
        "cuMemAlloc",           "cuMemAlloc_v2",    "cuMemFree", "cuMemFree_v2",
        "cuMemAllocAsync_ptsz", "cuNoSuchFunction", "malloc",    ""};
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);

    HOLD(handle != NULL);
    *(void **)&first = dlsym(handle, "cuGetProcAddress");
    *(void **)&second = dlsym(handle, "cuGetProcAddress_v2");
    HOLD(first != NULL && second != NULL);
    printf("no name: %d\n", second(NULL, (void **)&handle, 12000, 0, NULL));
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        ask(&questions[i]);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        printf("dlsym \"%s\": %s\n", names[i], dlsym(handle, names[i]) ? "found" : "NULL");
    }
    return 0;
}
