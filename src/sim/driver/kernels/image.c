#include "sim/driver/kernels/image.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver/kernels/launch_demand.h"
#include "system/demangle.h"

/* The maximum number of threads of a block, unless the kernel declares a limit. */
#define MAX_THREADS 1024

struct sim_image *sim_image_ref(struct sim_image *image)
{
    image->refs++;
    return image;
}

void sim_image_unref(struct sim_image *image)
{
    if (--image->refs > 0) {
        return;
    }
    while (image->globals != NULL) {
        struct sim_global *global = image->globals;

        image->globals = global->next;
        free(global->name);
        free(global);
    }
    while (image->kernels != NULL) {
        struct sim_image_kernel *kernel = image->kernels;

        image->kernels = kernel->next;
        free(kernel->info.name);
        if (kernel->info.builtin == NULL) {
            free(kernel->info.params);
        }
        free(kernel->info.computation);
        free(kernel->info.declared);
        free(kernel);
    }
    sim_code_free(image->code);
    free(image);
}

static struct sim_image_kernel *find_kernel(const struct sim_image *image, const char *name,
                                            size_t length)
{
    struct sim_image_kernel *kernel = image->kernels;

    while (kernel != NULL &&
           (strncmp(kernel->info.name, name, length) != 0 || kernel->info.name[length] != '\0')) {
        kernel = kernel->next;
    }
    return kernel;
}

/* If the sizes of all parameters are known from the name, places them one after the other, each at
 * the next multiple of its alignment. */
static void place_declared(struct sim_kernel_info *info)
{
    struct sim_param *params = calloc(info->declared_count + 1, sizeof(*params));
    size_t end = 0;

    for (size_t i = 0; params != NULL && i < info->declared_count; i++) {
        const struct sim_declared *declared = &info->declared[i];

        if (declared->bytes == 0) {
            free(params);
            return;
        }
        end = (end + declared->align - 1) / declared->align * declared->align;
        params[i] = (struct sim_param){end, declared->bytes, declared->words == 1};
        end += declared->bytes;
    }
    if (params != NULL) {
        info->params_known = true;
        info->params = params;
        info->param_count = info->declared_count;
        info->param_bytes = end;
    }
}

/* True if the parameters in the name fit the places in the code. */
static bool name_agrees(const struct sim_kernel_info *info, const struct sim_param_place *places,
                        size_t count)
{
    for (size_t i = 0; i < info->declared_count; i++) {
        if (i >= count ||
            (info->declared[i].bytes > 0 && info->declared[i].bytes != places[i].size)) {
            return false;
        }
    }
    return info->declared_count == count;
}

/* True if some words may be addresses, but no parameter is known to be one. */
static bool is_structs_only(const struct sim_kernel_info *info)
{
    bool any = false;

    for (size_t i = 0; i < info->param_count; i++) {
        bool is_declared = info->declared != NULL && info->declared[i].bytes > 0;

        if (info->params[i].is_word || (is_declared && info->declared[i].words > 0)) {
            return false;
        }
        any |= !is_declared && info->params[i].size >= sizeof(uint64_t);
    }
    return any;
}

/* Takes the parameters from the code. If the name has no types, a parameter of 64 bits may be an
 * address. */
static bool place_by_code(struct sim_kernel_info *info, struct sim_code *code)
{
    size_t count = 0;
    const struct sim_param_place *places = sim_code_params(code, info->name, &count);
    bool has_types = spw_demangle_is_mangled(info->name);
    struct sim_param *params = places == NULL ? NULL : calloc(count + 1, sizeof(*params));

    if (params == NULL) {
        return false;
    }
    if (!name_agrees(info, places, count)) {
        free(info->declared);
        info->declared = NULL;
        info->declared_count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        size_t end = (size_t)places[i].offset + places[i].size;

        params[i] = (struct sim_param){
            .offset = places[i].offset,
            .size = places[i].size,
            .is_word = info->declared != NULL ? info->declared[i].words == 1
                                              : !has_types && places[i].size == sizeof(uint64_t),
        };
        info->param_bytes = end > info->param_bytes ? end : info->param_bytes;
    }
    info->params_known = true;
    info->params = params;
    info->param_count = count;
    info->layout = is_structs_only(info) ? SPW_LAYOUT_STRUCTS : SPW_LAYOUT_CODE;
    return true;
}

/* Collects the known facts about a kernel that is not built in. */
static void learn(struct sim_kernel_info *info, struct sim_code *code)
{
    bool is_named = sim_declaration_read(info->name, &info->declared, &info->declared_count);

    info->computation = sim_computation_read(info->name);
    info->constant_params = sim_declaration_constant(info->name);
    info->traits = sim_launch_traits(info->name);
    if (!place_by_code(info, code) && is_named) {
        info->layout = SPW_LAYOUT_NAME;
        place_declared(info);
    }
}

struct sim_kernel_info *sim_image_add_kernel(struct sim_image *image, const char *name,
                                             size_t name_length)
{
    struct sim_image_kernel **end = &image->kernels;
    struct sim_image_kernel *kernel = calloc(1, sizeof(*kernel));
    struct sim_kernel_info *info;

    if (kernel == NULL) {
        return NULL;
    }
    info = &kernel->info;
    info->name = strndup(name, name_length);
    if (info->name == NULL) {
        free(kernel);
        return NULL;
    }
    info->max_threads = MAX_THREADS;
    info->builtin = sim_builtin_find(info->name);
    if (info->builtin != NULL) {
        info->layout = SPW_LAYOUT_BUILTIN;
        info->params_known = true;
        info->params = (struct sim_param *)info->builtin->params;
        info->param_count = info->builtin->param_count;
        info->param_bytes = info->builtin->param_bytes;
    } else {
        learn(info, image->code);
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = kernel;
    return info;
}

const struct sim_kernel_info *sim_image_kernel(struct sim_image *image, const char *name)
{
    size_t length = strlen(name);
    struct sim_image_kernel *kernel = find_kernel(image, name, length);

    if (kernel != NULL) {
        return &kernel->info;
    }
    return length == 0 ? NULL : sim_image_add_kernel(image, name, length);
}

struct sim_global *sim_image_add_global(struct sim_image *image, const char *name,
                                        size_t name_length, size_t size, size_t align)
{
    struct sim_global *global = calloc(1, sizeof(*global));

    if (global == NULL) {
        return NULL;
    }
    global->name = strndup(name, name_length);
    if (global->name == NULL) {
        free(global);
        return NULL;
    }
    align = align == 0 ? 1 : align;
    global->size = size;
    global->offset = (image->data_bytes + align - 1) / align * align;
    image->data_bytes = global->offset + size;
    global->next = image->globals;
    image->globals = global;
    return global;
}

const struct sim_global *sim_image_global(const struct sim_image *image, const char *name)
{
    const struct sim_global *global = image->globals;

    while (global != NULL && strcmp(global->name, name) != 0) {
        global = global->next;
    }
    return global;
}
