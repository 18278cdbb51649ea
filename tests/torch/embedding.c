/* A program with Python inside: embedding LIBPYTHON PYTHON [ARGUMENTS...]. It does what PYTHON
 * would do with the arguments. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    int (*run)(int, char **) = NULL;

    if (library != NULL) {
        *(void **)&run = dlsym(library, "Py_BytesMain");
    }
    if (run == NULL) {
        (void)fprintf(stderr, "embedding: no interpreter\n");
        return 2;
    }
    return run(argc - 2, argv + 2);
}
