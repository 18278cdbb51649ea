#include "sim/driver/core/errors.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct sim_error *sim_error_find(CUresult code)
{
    for (unsigned int i = 0; i < sim_error_count; i++) {
        if (sim_errors[i].code == (int)code) {
            return &sim_errors[i];
        }
    }
    return NULL;
}

bool sim_error_parse(const char *text, CUresult *ret_code)
{
    static const char prefix[] = "CUDA_ERROR_";
    char *end;
    long number;

    if (isdigit((unsigned char)text[0])) {
        errno = 0;
        number = strtol(text, &end, 10);
        if (*end != '\0' || errno != 0 || number > 999) {
            return false;
        }
        *ret_code = (CUresult)number;
        return true;
    }
    for (unsigned int i = 0; i < sim_error_count; i++) {
        const char *name = sim_errors[i].name;

        if (strcmp(name, text) == 0 || (strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
                                        strcmp(name + sizeof(prefix) - 1, text) == 0)) {
            *ret_code = (CUresult)sim_errors[i].code;
            return true;
        }
    }
    return false;
}
