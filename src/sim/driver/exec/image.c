#include "sim/driver/exec/image.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/demangle.h"
#include "common/grow.h"
#include "sim/driver/code/cubin.h"
#include "sim/driver/code/fatbin.h"
#include "sim/driver/core/device.h"
#include "sim/driver/exec/ptx.h"

/* The most threads of a block, unless the kernel declares a limit. */
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

/* Places the parameters one after the other, each at the next multiple of its alignment, if all
 * sizes are known from the name. */
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

/* Takes the parameters from the code. Without types in the name, 64 bits may be an address. */
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

/* True if the data begin with these bytes. Stops at the first difference, so that short data of
 * another format are not read beyond their end. */
static bool begins_with(const void *data, const void *magic, size_t size)
{
    const volatile unsigned char *bytes = data;
    const unsigned char *expected = magic;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != expected[i]) {
            return false;
        }
    }
    return true;
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Reads one symbol of a cubin: a variable in a data section, or a kernel with its code in a section
 * of its name. */
static CUresult read_symbol(struct sim_image *image, const Elf64_Sym *symbol, const char *name,
                            const char *section)
{
    unsigned int type = ELF64_ST_TYPE(symbol->st_info);
    bool is_data = has_prefix(section, ".nv.global") || has_prefix(section, ".nv.constant3");
    bool ok = true;

    if (type == STT_OBJECT && is_data && symbol->st_size > 0) {
        ok = sim_image_add_global(image, name, strlen(name), symbol->st_size, 256) != NULL;
    } else if (type == STT_FUNC && has_prefix(section, ".text.") &&
               strcmp(section + strlen(".text."), name) == 0) {
        ok = sim_image_add_kernel(image, name, strlen(name)) != NULL;
        image->declared_count++;
    }
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult read_symbols(struct sim_image *image, const struct sim_cubin *cubin,
                             const Elf64_Shdr *table)
{
    const unsigned char *symbols = sim_cubin_content(cubin, table);
    Elf64_Shdr names;

    if (symbols == NULL || table->sh_link >= cubin->section_count) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    names = sim_cubin_section(cubin, table->sh_link);
    for (size_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        Elf64_Shdr section;
        CUresult result;

        memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= cubin->section_count) {
            continue;
        }
        section = sim_cubin_section(cubin, symbol.st_shndx);
        result = read_symbol(image, &symbol, sim_cubin_text(cubin, &names, symbol.st_name),
                             sim_cubin_name(cubin, &section));
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult read_cubin(struct sim_image *image, const void *data, size_t size)
{
    struct sim_cubin cubin;
    CUresult result = CUDA_SUCCESS;

    if (!sim_cubin_open(data, size == SIM_IMAGE_ANY_SIZE ? sim_cubin_size(data) : size, &cubin)) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    image->code = sim_code_of_cubin(&cubin);
    image->globals_known = true;
    for (size_t i = 0; i < cubin.section_count && result == CUDA_SUCCESS; i++) {
        Elf64_Shdr section = sim_cubin_section(&cubin, i);

        if ((section.sh_flags & SHF_ALLOC) != 0 && section.sh_type == SHT_PROGBITS) {
            image->code_bytes += section.sh_size;
        }
        if (section.sh_type == SHT_SYMTAB) {
            result = read_symbols(image, &cubin, &section);
        }
    }
    return result;
}

static unsigned int device_arch(void)
{
    const struct spw_gpu_profile *profile = sim_device_get(0)->profile;

    return (unsigned int)(profile->major * 10 + profile->minor);
}

/* Entries of a fat binary may be compressed; the memory of all of them is charged. */
static CUresult read_fatbin(struct sim_image *image, const void *data, size_t size, bool kept)
{
    struct sim_fatbin_choice choice = sim_fatbin_choose(data, size, device_arch());

    image->code_bytes = ((const struct sim_fatbin_head *)data)->payload_bytes;
    image->code = sim_code_of_fatbin(&choice, kept);
    image->binary_version = choice.binary;
    image->ptx_version = choice.ptx;
    return choice.runs ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The code size of text that is not PTX is its length; 0 for other data. */
static size_t text_length(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    bool is_text = (first >= ' ' && first < 0x7f) || first == '\n' || first == '\t';

    return is_text ? strlen(text) : 0;
}

static CUresult read_format(struct sim_image *image, const void *data, size_t size, bool kept)
{
    const uint32_t wrapper_magic = SIM_FATBIN_WRAPPER_MAGIC;
    const uint32_t fatbin_magic = SIM_FATBIN_MAGIC;

    /* A wrapper is never in a file: its pointer is an address of this process. */
    if (size == SIM_IMAGE_ANY_SIZE && begins_with(data, &wrapper_magic, sizeof(wrapper_magic))) {
        data = ((const struct sim_fatbin_wrapper *)data)->data;
    }
    if (begins_with(data, &fatbin_magic, sizeof(fatbin_magic))) {
        return read_fatbin(image, data, size, kept);
    }
    if (begins_with(data, ELFMAG, SELFMAG)) {
        return read_cubin(image, data, size);
    }
    image->code_bytes = text_length(data);
    return sim_ptx_is_ptx(data) ? sim_ptx_read(data, image) : CUDA_SUCCESS;
}

CUresult sim_image_read(const void *data, size_t size, bool kept, struct sim_image **ret_image)
{
    struct sim_image *image;
    CUresult result;

    if (data == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    image = calloc(1, sizeof(*image));
    if (image == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    image->refs = 1;
    result = read_format(image, data, size, kept);
    if (result != CUDA_SUCCESS) {
        sim_image_unref(image);
        return result;
    }
    *ret_image = image;
    return CUDA_SUCCESS;
}

CUresult sim_image_read_file(const char *path, void **ret_data, size_t *ret_size)
{
    FILE *file = path == NULL ? NULL : fopen(path, "rbe");
    char *data = NULL;
    size_t size = 0;
    size_t got = 1;

    if (file == NULL) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    while (got > 0) {
        if (!SPW_RESIZE(&data, size + (1 << 16) + 1)) {
            free(data);
            fclose(file);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        got = fread(data + size, 1, 1 << 16, file);
        size += got;
        data[size] = '\0';
    }
    fclose(file);
    *ret_data = data;
    *ret_size = size;
    return CUDA_SUCCESS;
}
