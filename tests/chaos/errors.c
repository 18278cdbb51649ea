#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

#include "chaos.h"

enum { CODES = 16 };

static struct {
    int codes[CODES];
    int count;
    _Atomic unsigned int findings, allowed;
} errors;

void errors_allow(int code)
{
    if (errors.count < CODES) {
        errors.codes[errors.count++] = code;
    }
}

void finding(const char *format, ...)
{
    char text[400];
    va_list arguments;

    if (atomic_load(&program.leaving)) {
        return; /* The driver goes away under the threads that are left. */
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    printf("FINDING (seed %u): %s\n", options.seed, text);
    atomic_fetch_add(&errors.findings, 1);
}

bool ok(CUresult result, const char *call)
{
    const char *name = "?";

    if (result == CUDA_SUCCESS) {
        return true;
    }
    for (int i = 0; i < errors.count; i++) {
        if ((int)result == errors.codes[i]) {
            atomic_fetch_add(&errors.allowed, 1);
            return false;
        }
    }
    (void)cuGetErrorName(result, &name);
    finding("%s: %s", call, name);
    return false;
}

bool ok_or(CUresult result, CUresult other, const char *call)
{
    return result != other && ok(result, call);
}

unsigned int errors_findings(void)
{
    return atomic_load(&errors.findings);
}

unsigned int errors_allowed(void)
{
    return atomic_load(&errors.allowed);
}
