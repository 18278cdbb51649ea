#include "cli/launch/program.h"

#include "system/fd.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 4096, SCRIPTS = 4 };

/* ---- finding the file ---- */

/* Finds the file that execvp would execute. Returns false if there is none. */
static bool find(const char *name, char path[PATH_MAX])
{
    const char *list = getenv("PATH");

    if (strchr(name, '/') != NULL) {
        snprintf(path, PATH_MAX, "%s", name);
        return access(path, X_OK) == 0;
    }
    for (list = list != NULL ? list : "/bin:/usr/bin"; list != NULL;) {
        int length = (int)strcspn(list, ":");

        snprintf(path, PATH_MAX, "%.*s%s%s", length, list, length > 0 ? "/" : "", name);
        if (access(path, X_OK) == 0) {
            return true;
        }
        list = list[length] == ':' ? list + length + 1 : NULL;
    }
    return false;
}

/* Replaces the path of a script with the path of its interpreter. If the interpreter is env, uses
 * the path of the program that env starts. Returns false if `head` is not the beginning of a
 * script, or if the new path does not exist. */
static bool follow_script(char head[HEAD], char path[PATH_MAX])
{
    char *rest = head + 2, *interpreter, *argument;

    if (strncmp(head, "#!", 2) != 0) {
        return false;
    }
    rest[strcspn(rest, "\n")] = '\0';
    interpreter = strtok_r(rest, " \t", &rest);
    argument = interpreter != NULL ? strtok_r(NULL, " \t", &rest) : NULL;
    if (argument != NULL && strcmp(argument, "-S") == 0) {
        argument = strtok_r(NULL, " \t", &rest);
    }
    if (interpreter != NULL && argument != NULL && strcmp(basename(interpreter), "env") == 0) {
        interpreter = argument;
    }
    return interpreter != NULL && find(interpreter, path);
}

/* ---- the kind of file ---- */

#if defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#else
enum { OWN_MACHINE = EM_X86_64 };
#endif

static const char *name_machine(unsigned machine)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {{EM_AARCH64, "AArch64"},    {EM_X86_64, "x86-64"}, {EM_ARM, "ARM"},
                 {EM_386, "x86 of 32 bits"}, {EM_PPC64, "POWER"},   {EM_RISCV, "RISC-V"},
                 {EM_S390, "IBM Z"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].machine == machine) {
            return names[i].name;
        }
    }
    return "another processor";
}

/* Returns true if the dynamic section marks the file as a program. The dynamic linker has no such
 * mark. */
static bool is_static_pie(int fd, const Elf64_Phdr *dynamic)
{
    Elf64_Dyn entries[128];
    size_t count = dynamic->p_filesz / sizeof(entries[0]);

    count = count < 128 ? count : 128;
    if (!spw_fd_read_at(fd, entries, count * sizeof(entries[0]), (off_t)dynamic->p_offset)) {
        return false;
    }
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag == DT_FLAGS_1) {
            return (entries[i].d_un.d_val & DF_1_PIE) != 0;
        }
    }
    return false;
}

static enum spw_cli_program_kind kind_of_linking(int fd, const Elf64_Ehdr *header)
{
    bool is_static = header->e_type == ET_EXEC;
    char linker[256];

    for (int i = 0; i < header->e_phnum; i++) {
        off_t at = (off_t)(header->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr));
        Elf64_Phdr part;

        if (!spw_fd_read_at(fd, &part, sizeof(part), at)) {
            return SPW_CLI_PROGRAM_USUAL;
        }
        if (part.p_type == PT_INTERP && part.p_filesz < sizeof(linker)) {
            memset(linker, 0, sizeof(linker));
            (void)spw_fd_read_at(fd, linker, part.p_filesz, (off_t)part.p_offset);
            return strstr(linker, "ld-musl") != NULL ? SPW_CLI_PROGRAM_MUSL : SPW_CLI_PROGRAM_USUAL;
        }
        is_static |= part.p_type == PT_DYNAMIC && is_static_pie(fd, &part);
    }
    return is_static ? SPW_CLI_PROGRAM_STATIC : SPW_CLI_PROGRAM_USUAL;
}

static bool is_set_id(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && (((status.st_mode & S_ISUID) && status.st_uid != getuid()) ||
                                       ((status.st_mode & S_ISGID) && status.st_gid != getgid()));
}

static void look_at_elf(int fd, const Elf64_Ehdr *header, struct spw_cli_program *program)
{
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != OWN_MACHINE) {
        program->kind = SPW_CLI_PROGRAM_FOREIGN;
        /* e_machine is at the same place in files of 32 and 64 bits. */
        snprintf(program->what, sizeof(program->what), "%s",
                 header->e_ident[EI_DATA] == ELFDATA2LSB ? name_machine(header->e_machine)
                                                         : "another processor");
        return;
    }
    program->kind = is_set_id(fd) ? SPW_CLI_PROGRAM_SET_ID : kind_of_linking(fd, header);
}

void spw_cli_program_look(const char *name, struct spw_cli_program *ret_program)
{
    union {
        char bytes[HEAD];
        Elf64_Ehdr elf;
    } head;
    bool found;

    *ret_program = (struct spw_cli_program){.kind = SPW_CLI_PROGRAM_USUAL};
    found = find(name, ret_program->path);
    snprintf(ret_program->file, sizeof(ret_program->file), "%s", found ? ret_program->path : "");
    for (int i = 0; found && i < SCRIPTS; i++) {
        int fd = spw_fd_open_regular(ret_program->path);
        ssize_t length;

        if (fd < 0) {
            return;
        }
        memset(&head, 0, sizeof(head));
        length = pread(fd, head.bytes, sizeof(head.bytes) - 1, 0);
        if (length >= (ssize_t)sizeof(head.elf) && memcmp(head.bytes, ELFMAG, SELFMAG) == 0) {
            look_at_elf(fd, &head.elf, ret_program);
            close(fd);
            return;
        }
        close(fd);
        found = follow_script(head.bytes, ret_program->path);
    }
}

bool spw_cli_program_reason(const struct spw_cli_program *program, char *text, size_t capacity)
{
    switch (program->kind) {
    case SPW_CLI_PROGRAM_USUAL:
        return false;
    case SPW_CLI_PROGRAM_STATIC:
        snprintf(text, capacity, "is static, so that nothing can be preloaded into it");
        break;
    case SPW_CLI_PROGRAM_SET_ID:
        snprintf(text, capacity,
                 "runs as another user or group (setuid), so that nothing is preloaded into it");
        break;
    case SPW_CLI_PROGRAM_MUSL:
        snprintf(text, capacity, "is built for musl, and spillway for glibc");
        break;
    case SPW_CLI_PROGRAM_FOREIGN:
        snprintf(text, capacity, "is a program for %s, and spillway for %s", program->what,
                 name_machine(OWN_MACHINE));
        break;
    }
    return true;
}
