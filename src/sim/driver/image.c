#include "sim/driver/image.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver/ptx.h"

/* What a program of nvcc holds in place of its fat binary, and the way to it. */
#define WRAPPER_MAGIC 0x466243b1U

struct fatbin_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *data;
    void *file;
};

/* The head of a fat binary as nvcc writes it: what follows are code images of several kinds. */
#define FATBIN_MAGIC 0xba55ed50U

struct fatbin_head {
    uint32_t magic;
    uint16_t version;
    uint16_t head_bytes;
    uint64_t payload_bytes;
};

/* Limits of a block where nothing else is known. */
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
        free(kernel->info.declared);
        free(kernel);
    }
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

/* Places the parameters one after the other, each at the next multiple of its alignment, if the
 * name tells the sizes of all. */
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
        info->layout = SIM_LAYOUT_BUILTIN;
        info->params_known = true;
        info->params = (struct sim_param *)info->builtin->params;
        info->param_count = info->builtin->param_count;
        info->param_bytes = info->builtin->param_bytes;
    } else if (sim_declaration_read(info->name, &info->declared, &info->declared_count)) {
        info->layout = SIM_LAYOUT_NAME;
        place_declared(info);
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

/* Whether the data begin with these bytes. Stops at the first difference: short data of another
 * kind are not read beyond their end. */
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

/* One symbol of a cubin: a variable in a data section, or a kernel, whose code is in a section that
 * bears its name. */
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

static CUresult read_symbols(struct sim_image *image, const unsigned char *elf,
                             const Elf64_Shdr *sections, const Elf64_Shdr *table,
                             const char *section_names)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(elf + table->sh_offset);
    const char *names = (const char *)elf + sections[table->sh_link].sh_offset;
    size_t count = table->sh_size / sizeof(*symbols);

    for (size_t i = 0; i < count; i++) {
        CUresult result;

        if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_shndx >= SHN_LORESERVE) {
            continue;
        }
        result = read_symbol(image, &symbols[i], names + symbols[i].st_name,
                             section_names + sections[symbols[i].st_shndx].sh_name);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult read_cubin(struct sim_image *image, const unsigned char *elf)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)elf;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(elf + head->e_shoff);
    const char *names;
    CUresult result = CUDA_SUCCESS;

    if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(*sections) ||
        head->e_shstrndx >= head->e_shnum) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    names = (const char *)elf + sections[head->e_shstrndx].sh_offset;
    image->globals_known = true;
    for (unsigned int i = 0; i < head->e_shnum && result == CUDA_SUCCESS; i++) {
        if ((sections[i].sh_flags & SHF_ALLOC) != 0 && sections[i].sh_type == SHT_PROGBITS) {
            image->code_bytes += sections[i].sh_size;
        }
        if (sections[i].sh_type == SHT_SYMTAB) {
            result = read_symbols(image, elf, sections, &sections[i], names);
        }
    }
    return result;
}

/* Text that is not PTX stands for its length in code. */
static size_t text_length(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    bool is_text = (first >= ' ' && first < 0x7f) || first == '\n' || first == '\t';

    return is_text ? strlen(text) : 0;
}

static CUresult read_format(struct sim_image *image, const void *data)
{
    const uint32_t wrapper_magic = WRAPPER_MAGIC;
    const uint32_t fatbin_magic = FATBIN_MAGIC;

    if (begins_with(data, &wrapper_magic, sizeof(wrapper_magic))) {
        data = ((const struct fatbin_wrapper *)data)->data;
    }
    if (begins_with(data, &fatbin_magic, sizeof(fatbin_magic))) {
        /* Its parts may be compressed; all of them are taken for loaded. */
        image->code_bytes = ((const struct fatbin_head *)data)->payload_bytes;
        return CUDA_SUCCESS;
    }
    if (begins_with(data, ELFMAG, SELFMAG)) {
        return read_cubin(image, data);
    }
    image->code_bytes = text_length(data);
    return sim_ptx_is_ptx(data) ? sim_ptx_read(data, image) : CUDA_SUCCESS;
}

CUresult sim_image_read(const void *data, struct sim_image **ret_image)
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
    result = read_format(image, data);
    if (result != CUDA_SUCCESS) {
        sim_image_unref(image);
        return result;
    }
    *ret_image = image;
    return CUDA_SUCCESS;
}

CUresult sim_image_read_file(const char *path, void **ret_data)
{
    FILE *file = path == NULL ? NULL : fopen(path, "rbe");
    char *data = NULL;
    size_t size = 0;
    size_t got = 1;

    if (file == NULL) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    while (got > 0) {
        char *larger = realloc(data, size + (1 << 16) + 1);

        if (larger == NULL) {
            free(data);
            fclose(file);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        data = larger;
        got = fread(data + size, 1, 1 << 16, file);
        size += got;
        data[size] = '\0';
    }
    fclose(file);
    *ret_data = data;
    return CUDA_SUCCESS;
}
