/* Looks up unusual names and versions by cuGetProcAddress and dlsym. Prints the results and whether
 * a function was found but no addresses, so the output is the same with and without spillway. */
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* NVIDIA's driver may die of a question without a name or without a place for the answer: a child
 * asks, and how it died is printed. */
static void ask_in_child(const char *what, get_v2 *get, const char *name, void **place, int version)
{
    CUdriverProcAddressQueryResult status;
    int ending = 0;
    pid_t child;

    printf("  %s: ", what);
    (void)fflush(stdout);
    child = fork();
    HOLD(child >= 0);
    if (child == 0) {
        printf("%d\n", get(name, place, version, 0, &status));
        (void)fflush(stdout);
        _exit(0);
    }
    HOLD(waitpid(child, &ending, 0) == child);
    if (WIFSIGNALED(ending)) {
        printf("died of signal %d\n", WTERMSIG(ending));
    }
}

static CUresult first_as_second(const char *name, void **place, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *unused)
{
    (void)unused;
    return first(name, place, version, flags);
}

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
    ask_in_child("v2, no place", second, question->name, NULL, question->version);
    ask_in_child("v1, no place", first_as_second, question->name, NULL, question->version);
}

int main(void)
{
    static const char *const names[] = {
        "cuMemAlloc",           "cuMemAlloc_v2",    "cuMemFree", "cuMemFree_v2",
        "cuMemAllocAsync_ptsz", "cuNoSuchFunction", "malloc",    ""};
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    void *answer = NULL;

    HOLD(handle != NULL);
    *(void **)&first = dlsym(handle, "cuGetProcAddress");
    *(void **)&second = dlsym(handle, "cuGetProcAddress_v2");
    HOLD(first != NULL && second != NULL);
    ask_in_child("no name", second, NULL, (void **)&answer, 12000);
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        ask(&questions[i]);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        printf("dlsym \"%s\": %s\n", names[i], dlsym(handle, names[i]) ? "found" : "NULL");
    }
    return 0;
}
