/* A library that nobody should load: notes that it was, in a file beside itself. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((constructor)) static void note(void)
{
    char path[4096];
    Dl_info info;
    FILE *file;

    if (dladdr((const void *)(uintptr_t)note, &info) != 0) {
        snprintf(path, sizeof(path), "%s.ran", info.dli_fname);
        file = fopen(path, "w");
        if (file != NULL) {
            fclose(file);
        }
    }
}
