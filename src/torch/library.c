#include "torch/library.h"

#include "callsite/modules.h"
#include "common/path.h"
#include "driver/dl.h"
#include "system/fd.h"
#include "system/loader.h"
#include "system/safe_read.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char library_name[] = "libc10_cuda.so";
static const char base_name[] = "libc10.so";

/* The address ranges of the code of the two libraries that contain the functions of the table. */
struct code {
    struct {
        uintptr_t begin, end;
    } ranges[8];
    size_t count;
};

static bool is_named(const char *path, const char *name)
{
    return strcmp(spw_path_name(path), name) == 0;
}

static int add_code(struct dl_phdr_info *info, size_t size, void *context)
{
    struct code *code = context;

    if (!is_named(info->dlpi_name, library_name) && !is_named(info->dlpi_name, base_name)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 &&
            code->count < sizeof(code->ranges) / sizeof(code->ranges[0])) {
            uintptr_t begin = info->dlpi_addr + segment->p_vaddr;

            code->ranges[code->count].begin = begin;
            code->ranges[code->count++].end = begin + segment->p_memsz;
        }
    }
    return 0;
}

static bool is_code(const struct code *code, uintptr_t address)
{
    for (size_t i = 0; i < code->count; i++) {
        if (address >= code->ranges[i].begin && address < code->ranges[i].end) {
            return true;
        }
    }
    return false;
}

/* Returns the module of the library; the newest one if there are several. */
static const struct spw_module *find_module(void)
{
    spw_callsite_modules_note();
    for (size_t i = spw_callsite_modules_count(); i-- > 0;) {
        const struct spw_module *module = spw_callsite_modules_get(i);

        if (is_named(module->path, library_name)) {
            return module;
        }
    }
    return NULL;
}

/* ---- the version ---- */

/* Reads the beginning of a file in the parent folder of the library's folder. */
static bool read_beside(const char *library, const char *name, char *text, size_t capacity)
{
    const char *slash = strrchr(library, '/');
    char path[SPW_MODULE_PATH];
    ssize_t length = -1;
    int fd;

    if (slash == NULL || (size_t)snprintf(path, sizeof(path), "%.*s/../%s", (int)(slash - library),
                                          library, name) >= sizeof(path)) {
        return false;
    }
    fd = spw_fd_open_regular(path);
    if (fd >= 0) {
        length = pread(fd, text, capacity - 1, 0);
        (void)close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* A wheel has its version in version.py, and the C++ distribution has it in build-version. */
static void read_version(const char *path, struct spw_torch_library *library)
{
    static const char key[] = "__version__ = '";
    char text[1024];
    const char *at = NULL;
    int major = 0, minor = 0, patch = 0;

    if (read_beside(path, "version.py", text, sizeof(text))) {
        at = strstr(text, key);
        at = at != NULL ? at + strlen(key) : NULL;
    } else if (read_beside(path, "build-version", text, sizeof(text))) {
        at = text;
    }
    if (at != NULL && sscanf(at, "%d.%d.%d", &major, &minor, &patch) >= 2) {
        (void)snprintf(library->version, sizeof(library->version), "%d.%d.%d", major, minor, patch);
        library->row = spw_torch_row_of(major, minor);
    }
}

/* ---- the object ---- */

static bool read_word(uintptr_t address, uintptr_t *ret_word)
{
    return address != 0 && address % sizeof(*ret_word) == 0 &&
           spw_safe_read(address, ret_word, sizeof(*ret_word));
}

/* Reads the name of an object's class. It is the second word of the type information, which
 * precedes the table. */
static bool read_class(uintptr_t table, char *name, size_t capacity)
{
    uintptr_t top = 1, type = 0, text = 0;

    memset(name, 0, capacity);
    return read_word(table - 2 * sizeof(uintptr_t), &top) && top == 0 &&
           read_word(table - sizeof(uintptr_t), &type) &&
           read_word(type + sizeof(uintptr_t), &text) && spw_safe_read(text, name, capacity - 1);
}

/* Returns true if the table has exactly as many functions as the row. */
static bool has_functions(uintptr_t table, const struct spw_torch_row *row)
{
    struct code code = {.count = 0};
    uintptr_t word;

    (void)spw_loader_iterate(add_code, &code);
    for (int i = 0; i < row->functions; i++) {
        if (!read_word(table + (size_t)i * sizeof(word), &word) || !is_code(&code, word)) {
            return false;
        }
    }
    return !read_word(table + (size_t)row->functions * sizeof(word), &word) ||
           !is_code(&code, word);
}

typedef void *name_function(void *ret, void *self);

/* Returns true if the name of the allocator is "native". The first word of a string is the address
 * of its text. */
static bool answers(const struct spw_torch_library *library)
{
    const int *slots = library->row->slots;
    bool (*initialized)(void *) = (bool (*)(void *))library->table[slots[SPW_TORCH_INITIALIZED]];
    struct {
        const char *text;
        uintptr_t rest[3];
    } string = {NULL, {0}};
    char text[8] = "";

    (void)initialized(library->native);
    SPW_TORCH_CALL(name_function, library->table[slots[SPW_TORCH_GET_NAME]], &string,
                   library->native);
    return spw_safe_read((uintptr_t)string.text, text, sizeof("native")) &&
           strcmp(text, "native") == 0;
}

/* Examines the allocator that PyTorch uses. */
static enum spw_torch_found look_at(struct spw_torch_library *library, const void *place)
{
    static const char native_class[] = "N3c104cuda20CUDACachingAllocator6Native";
    static const char async_class[] = "N3c104cuda20CUDACachingAllocator15CudaMalloc";
    uintptr_t object = 0, table = 0;
    char class[sizeof(async_class)];

    if (!read_word((uintptr_t)place, &object) || !read_word(object, &table)) {
        return SPW_TORCH_ABSENT;
    }
    if (!read_class(table, class, sizeof(class))) {
        return SPW_TORCH_OTHER;
    }
    if (strncmp(class, native_class, strlen(native_class)) != 0) {
        return strcmp(class, async_class) == 0 ? SPW_TORCH_ASYNC_BACKEND : SPW_TORCH_OTHER;
    }
    if (library->row == NULL || !spw_torch_returns_are_known) {
        return SPW_TORCH_UNKNOWN;
    }
    library->native = (struct spw_torch_object *)object;
    library->table = (spw_torch_code *const *)table;
    if (library->row->functions > SPW_TORCH_TABLE_MOST || !has_functions(table, library->row) ||
        !answers(library)) {
        return SPW_TORCH_DIFFERENT;
    }
    library->deleter =
        ((spw_torch_deleter * (*)(void *))
             library->table[library->row->slots[SPW_TORCH_RAW_DELETER]])(library->native);
    return library->deleter != NULL ? SPW_TORCH_FOUND : SPW_TORCH_DIFFERENT;
}

/* ---- other functions ---- */

/* Returns a variable of the library. If the program was linked with the library, the linker may
 * have put a copy of the variable into the executable. That copy is then in use. */
static void *find_variable(void *handle, const char *name)
{
    void *found = spw_driver_dl_symbol_anywhere(name);

    return found != NULL ? found : spw_driver_dl_symbol(handle, name);
}

#define FIND(member, name)                                                                         \
    ((library->member =                                                                            \
          (__typeof__(library->member))(uintptr_t)spw_driver_dl_symbol(handle, name)) != NULL)

/* In PyTorch 2.6 and 2.7, a snapshot on a thread that uses a private pool is limited to that pool.
 * PyTorch 2.5 has private pools, but does not limit snapshots. */
static void find_active_pool(struct spw_torch_library *library, void *handle)
{
    if (library->row->minor >= 6 && !library->row->by_pool) {
        (void)FIND(active_pool, "_ZN3c104cuda14MemPoolContext16getActiveMemPoolEv");
    }
}

/* The wheels on PyPI until PyTorch 2.6 use the older std::string, and therefore have this
 * constructor of c10::Error. */
static bool has_older_strings(void *handle)
{
    return spw_driver_dl_symbol(handle, "_ZN3c105ErrorC1ENS_14SourceLocationESs") != NULL;
}

static bool find_functions(struct spw_torch_library *library, void *handle)
{
    library->has_older_strings = has_older_strings(handle);
    find_active_pool(library, handle);
    /* The native allocator calls the first function until PyTorch 2.9, and the second one after
     * that. */
    (void)(FIND(divisions, "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig"
                           "24roundup_power2_divisionsEm") ||
           FIND(divisions, "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig"
                           "24roundup_power2_divisionsEm"));
    return FIND(get_device, "_ZN3c104cuda9GetDeviceEPa") &&
           FIND(current_stream, "_ZN3c104cuda20getCurrentCUDAStreamEa") &&
           FIND(stream_handle, "_ZNK3c104cuda10CUDAStream6streamEv") &&
           FIND(report, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE") &&
           FIND(is_profiled, "_ZN3c1022memoryProfilingEnabledEv") && FIND(bind, "cudaFree") &&
           FIND(new_memory, "_Znwm") && FIND(delete_memory, "_ZdlPv") &&
           (library->traced = find_variable(handle, "_ZN3c104impl8GPUTrace9haveStateE")) != NULL;
}

enum spw_torch_found spw_torch_library_find(struct spw_torch_library *ret_library)
{
    const struct spw_module *module = find_module();
    enum spw_torch_found found = SPW_TORCH_ABSENT;
    void *handle, *place;

    *ret_library = (struct spw_torch_library){.row = NULL};
    if (module == NULL) {
        return SPW_TORCH_ABSENT;
    }
    spw_loader_enter();
    handle = dlopen(module->path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    spw_loader_leave();
    if (handle == NULL) {
        return SPW_TORCH_ABSENT;
    }
    place = find_variable(handle, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    if (place != NULL) {
        read_version(module->path, ret_library);
        found = look_at(ret_library, place);
        if (found == SPW_TORCH_FOUND && !find_functions(ret_library, handle)) {
            found = SPW_TORCH_DIFFERENT;
        }
    }
    (void)dlclose(handle);
    return found;
}
