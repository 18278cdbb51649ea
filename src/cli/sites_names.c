#include "cli/sites_names.h"

#include "common/demangle.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A library's file, mapped; `symbols` is NULL when it cannot be used. */
struct spw_names_file {
    char *path;
    const char *image;
    size_t bytes;
    const ElfW(Sym) * symbols;
    size_t symbol_count;
    const char *texts;
    size_t text_bytes;
};

/* ---- reading a file; nothing in it is trusted ---- */

static const void *part(const struct spw_names_file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->bytes && bytes <= file->bytes - offset ? file->image + offset : NULL;
}

static const ElfW(Shdr) * sections(const struct spw_names_file *file, size_t *ret_count)
{
    const ElfW(Ehdr) *head = part(file, 0, sizeof(*head));

    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(ElfW(Shdr)) ||
        head->e_shoff % sizeof(uint64_t) != 0) {
        return NULL;
    }
    *ret_count = head->e_shnum;
    return part(file, head->e_shoff, head->e_shnum * sizeof(ElfW(Shdr)));
}

static bool has_build_id(const struct spw_names_file *file, const ElfW(Shdr) * section,
                         const char *build_id)
{
    enum { NAME = 4 };
    const unsigned char *notes = part(file, section->sh_offset, section->sh_size);
    const size_t begin = sizeof(ElfW(Nhdr)) + NAME;
    char text[2 * 64 + 1] = "";
    ElfW(Nhdr) note;

    if (notes == NULL || section->sh_size < begin) {
        return false;
    }
    memcpy(&note, notes, sizeof(note));
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != NAME || note.n_descsz > 64 ||
        note.n_descsz > section->sh_size - begin) {
        return false;
    }
    for (size_t i = 0; i < note.n_descsz; i++) {
        snprintf(text + 2 * i, 3, "%02x", notes[begin + i]);
    }
    return strcmp(text, build_id) == 0;
}

static bool is_the_build(const struct spw_names_file *file, const ElfW(Shdr) * list, size_t count,
                         const char *build_id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].sh_type == SHT_NOTE && has_build_id(file, &list[i], build_id)) {
            return true;
        }
    }
    return *build_id == '\0';
}

static void find_symbols(struct spw_names_file *file, const char *build_id)
{
    size_t count = 0;
    const ElfW(Shdr) *list = sections(file, &count);

    if (list == NULL || !is_the_build(file, list, count, build_id)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const ElfW(Shdr) *table = &list[i], *texts;

        if (table->sh_type != SHT_SYMTAB || table->sh_link >= count ||
            table->sh_offset % sizeof(uint64_t) != 0) {
            continue;
        }
        texts = &list[table->sh_link];
        file->symbols = part(file, table->sh_offset, table->sh_size);
        file->texts = part(file, texts->sh_offset, texts->sh_size);
        file->symbol_count = table->sh_size / sizeof(ElfW(Sym));
        file->text_bytes = texts->sh_size;
        if (file->texts == NULL || file->text_bytes == 0 ||
            file->texts[file->text_bytes - 1] != '\0') {
            file->symbols = NULL;
        }
        return;
    }
}

static void open_file(struct spw_names_file *file, const char *path, const char *build_id)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *image = MAP_FAILED;
    struct stat status;

    *file = (struct spw_names_file){.path = strdup(path)};
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (image != MAP_FAILED) {
        file->image = image;
        file->bytes = (size_t)status.st_size;
        find_symbols(file, build_id);
    }
}

static struct spw_names_file *file_of(struct spw_names *names, const char *path,
                                      const char *build_id)
{
    struct spw_names_file *files;

    for (size_t i = 0; i < names->count; i++) {
        if (names->files[i].path != NULL && strcmp(names->files[i].path, path) == 0) {
            return &names->files[i];
        }
    }
    files = realloc(names->files, (names->count + 1) * sizeof(*files));
    if (files == NULL) {
        return NULL;
    }
    names->files = files;
    open_file(&files[names->count], path, build_id);
    return &files[names->count++];
}

char *spw_names_find(struct spw_names *names, const char *library, const char *build_id,
                     uint64_t offset)
{
    const struct spw_names_file *file = file_of(names, library, build_id);

    for (size_t i = 0; file != NULL && file->symbols != NULL && i < file->symbol_count; i++) {
        const ElfW(Sym) *symbol = &file->symbols[i];

        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
            offset >= symbol->st_value && offset - symbol->st_value < symbol->st_size &&
            symbol->st_name < file->text_bytes) {
            return strdup(file->texts + symbol->st_name);
        }
    }
    return NULL;
}

/* ---- C++ ---- */

char *spw_names_readable(const char *symbol)
{
    char *readable = NULL;

    if (spw_demangle_is_mangled(symbol) && spw_demangle_find(/* load */ true)) {
        readable = spw_demangle(symbol);
    }
    return readable != NULL ? readable : strdup(symbol);
}

void spw_names_fini(struct spw_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->files[i].image != NULL) {
            (void)munmap((void *)(uintptr_t)names->files[i].image, names->files[i].bytes);
        }
        free(names->files[i].path);
    }
    free(names->files);
    *names = (struct spw_names){0};
}
