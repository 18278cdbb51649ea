/* Stand-in for libc10.so: the functions and the flag that src/torch/ looks for, by PyTorch's names,
 * and C++'s operators of memory. */
#include "../../fake.h"

#include <stdlib.h>

bool fake_profiled, fake_traced;
_Atomic int64_t fake_reported;

bool fake_is_profiled(void) __asm__("_ZN3c1022memoryProfilingEnabledEv");
void fake_report(void *memory, int64_t bytes, size_t allocated, size_t reserved,
                 uint16_t device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

#define EXPORT __attribute__((visibility("default")))

EXPORT bool fake_is_profiled(void)
{
    return fake_profiled;
}

EXPORT void fake_report(void *memory, int64_t bytes, size_t allocated, size_t reserved,
                        uint16_t device)
{
    (void)memory, (void)allocated, (void)reserved, (void)device;
    atomic_fetch_add(&fake_reported, bytes);
}

void *fake_new(size_t bytes)
{
    return malloc(bytes);
}

void fake_delete(void *memory)
{
    free(memory);
}
