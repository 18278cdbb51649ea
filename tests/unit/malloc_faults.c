#include "malloc_faults.h"

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *memory);

long calls_until_failure, live_allocations;

static bool may_allocate(void)
{
    return calls_until_failure == 0 || --calls_until_failure > 0;
}

static void *count(void *memory)
{
    live_allocations += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return may_allocate() ? count(__real_malloc(bytes)) : NULL;
}

void *__wrap_calloc(size_t count_of, size_t bytes)
{
    return may_allocate() ? count(__real_calloc(count_of, bytes)) : NULL;
}

void *__wrap_realloc(void *old, size_t bytes)
{
    void *memory = may_allocate() ? __real_realloc(old, bytes) : NULL;

    live_allocations += old == NULL && memory != NULL;
    return memory;
}

void __wrap_free(void *memory)
{
    live_allocations -= memory != NULL;
    __real_free(memory);
}
