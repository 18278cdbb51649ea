/* Registers memory with other libraries and prints the calls that they get and their results, which
 * do not depend on intercepting libraries.
 *
 *     registers_linked           linked with the libraries
 *     registers_shim             linked with a library that wraps one of them
 *     registers dlsym FOLDER     opens them in a folder and calls dlsym
 *     registers dlvsym FOLDER    as dlsym, for the versions of libibverbs
 *     registers absent           looks up functions that do not exist
 *     registers doors FOLDER     prints the library of each function that dlsym returns */
#include <dlfcn.h>
#include <string.h>

#include "check.h"
#include "driver/register_api.h"

static char memory[100];

#if defined(REGISTERS_LINKED)

int main(void)
{
    struct ibv_mr_init_attr attributes = {sizeof(memory), 3, 2, 0, memory};
    struct ncclWindow_vidmem *window = NULL;
    void *handle = NULL;

    setvbuf(stdout, NULL, _IONBF, 0);
    printf("%d\n", ncclCommRegister((void *)7, memory, 10, &handle));
    printf("%p\n", handle);
    printf("%d\n", ncclCommWindowRegister((void *)8, memory, 11, &window, 2));
    printf("%p\n", (void *)window);
    for (int i = 0; i < 2; i++) {
        printf("%p\n", (void *)ibv_reg_mr(NULL, memory, 12, 3));
    }
    printf("%p\n", (void *)ibv_reg_mr_iova(NULL, memory, 13, 4, 5));
    printf("%p\n", (void *)ibv_reg_mr_iova2(NULL, memory, 14, 6, 7));
    printf("%p\n", (void *)ibv_reg_mr_ex(NULL, &attributes));
    attributes.comp_mask = 0;
    printf("%p\n", (void *)ibv_reg_mr_ex(NULL, &attributes));
    printf("%d\n", ibv_rereg_mr(NULL, 8, NULL, memory, 15, 9));
    printf("%d %d\n", cuFileBufRegister(memory, 16, 10).err,
           (int)cuFileBufRegister(memory, 17, 11).cu_err);
    printf("%d\n", gdr_pin_buffer(NULL, (unsigned long)(uintptr_t)memory, 18, 12, 13, NULL));
    printf("%d\n", gdr_pin_buffer_v2(NULL, (unsigned long)(uintptr_t)memory, 19, 14, NULL));
    return 0;
}

#elif defined(REGISTERS_SHIM)

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 2; i++) {
        printf("%p\n", (void *)ibv_reg_mr(NULL, memory, 12, 3));
    }
    return 0;
}

#else

static void *open_in(const char *folder, const char *file)
{
    char path[4096];
    void *library;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, file);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    HOLD(library != NULL);
    return library;
}

static void ask_dlsym(const char *folder)
{
    void *handle = NULL;
    __typeof__(ncclCommRegister) *in_nccl;
    __typeof__(ibv_reg_mr) *in_verbs;

    *(void **)&in_nccl = dlsym(open_in(folder, "libnccl.so.2"), "ncclCommRegister");
    *(void **)&in_verbs = dlsym(open_in(folder, "libibverbs.so.1"), "ibv_reg_mr");
    HOLD(in_nccl != NULL && in_verbs != NULL);
    printf("%d\n", in_nccl((void *)7, memory, 10, &handle));
    printf("%p\n", handle);
    printf("%p\n", (void *)in_verbs(NULL, memory, 12, 3));
}

static void ask_dlvsym(const char *folder)
{
    static const struct {
        const char *name, *version;
    } asked[] = {{"ibv_reg_mr", "IBVERBS_1.0"},       {"ibv_reg_mr", "IBVERBS_1.1"},
                 {"ibv_reg_mr", "IBVERBS_1.0"},       {"ibv_reg_mr", "IBVERBS_1.8"},
                 {"ibv_reg_mr_iova2", "IBVERBS_1.8"}, {"ibv_reg_mr_iova2", "IBVERBS_1.1"},
                 {"ibv_dereg_mr", "IBVERBS_1.1"}};
    void *library = open_in(folder, "libibverbs.so.1");

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        __typeof__(ibv_reg_mr) *found;

        *(void **)&found = dlvsym(library, asked[i].name, asked[i].version);
        printf("%s %s: %s\n", asked[i].name, asked[i].version,
               found == NULL ? "nothing" : "a function");
        HOLD((found == NULL) == (dlerror() != NULL));
        if (found != NULL && strcmp(asked[i].name, "ibv_reg_mr") == 0) {
            (void)found(NULL, memory, 12, 3);
        }
    }
}

static const char *const names[] = {
    "ncclCommRegister",  "ncclCommWindowRegister", "ibv_reg_mr",       "ibv_reg_mr_iova",
    "ibv_reg_mr_iova2",  "ibv_reg_mr_ex",          "ibv_rereg_mr",     "ibv_reg_dmabuf_mr",
    "cuFileBufRegister", "gdr_pin_buffer",         "gdr_pin_buffer_v2"};

static void ask_absent(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        printf("%s: ", names[i]);
        printf("%p ", dlsym(RTLD_DEFAULT, names[i]));
        printf("%s ", dlerror() == NULL ? "quiet" : "an error");
        printf("%p ", dlsym(dlopen(NULL, RTLD_NOW), names[i]));
        printf("%p\n", dlvsym(RTLD_DEFAULT, names[i], "IBVERBS_1.1"));
    }
}

/* The library that a function is in, without its folder. */
static const char *home(void *function)
{
    const char *slash;
    Dl_info info;

    if (function == NULL || dladdr(function, &info) == 0) {
        return "nowhere";
    }
    slash = strrchr(info.dli_fname, '/');
    return slash == NULL ? info.dli_fname : slash + 1;
}

static void say_doors(const char *folder)
{
    void *libraries[] = {open_in(folder, "libnccl.so.2"), open_in(folder, "libibverbs.so.1"),
                         open_in(folder, "libcufile.so.0"), open_in(folder, "libgdrapi.so.2")};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *found = NULL;

        for (size_t j = 0; found == NULL && j < sizeof(libraries) / sizeof(libraries[0]); j++) {
            found = dlsym(libraries[j], names[i]);
        }
        printf("%s: %s\n", names[i], home(found));
    }
    printf("1.0: %s\n", home(dlvsym(libraries[1], "ibv_reg_mr", "IBVERBS_1.0")));
    printf("1.1: %s\n", home(dlvsym(libraries[1], "ibv_reg_mr", "IBVERBS_1.1")));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc == 3 && strcmp(argv[1], "dlsym") == 0) {
        ask_dlsym(argv[2]);
    } else if (argc == 3 && strcmp(argv[1], "dlvsym") == 0) {
        ask_dlvsym(argv[2]);
    } else if (argc == 3 && strcmp(argv[1], "doors") == 0) {
        say_doors(argv[2]);
    } else if (argc == 2 && strcmp(argv[1], "absent") == 0) {
        ask_absent();
    } else {
        fprintf(stderr, "usage: registers dlsym|dlvsym|doors FOLDER, registers absent\n");
        return 2;
    }
    return 0;
}

#endif
