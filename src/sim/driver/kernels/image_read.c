#include "sim/driver/kernels/image_read.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "sim/driver/code/cubin.h"
#include "sim/driver/code/fatbin.h"
#include "sim/driver/core/device.h"
#include "sim/driver/kernels/ptx.h"

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

/* Reads one symbol of a cubin: a variable in a data section, or a kernel whose code is in the
 * section of that kernel (.text.NAME). */
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

/* Counts the bytes of all entries of the fat binary, compressed or not, as code. */
static CUresult read_fatbin(struct sim_image *image, const void *data, size_t size, bool kept)
{
    struct sim_fatbin_choice choice = sim_fatbin_choose(data, size, device_arch());

    image->code_bytes = ((const struct sim_fatbin_head *)data)->payload_bytes;
    image->code = sim_code_of_fatbin(&choice, kept);
    image->binary_version = choice.binary;
    image->ptx_version = choice.ptx;
    return choice.runs ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The length of text, PTX or not, which counts as its code size; 0 for other data. */
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
