#include "callsite/modules.h"

#include "system/loader.h"
#include "system/lock.h"
#include "system/safe_read.h"
#include "system/start.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct spw_callsite_modules *const modules = &spw_callsite_state.modules;

/* Takes the build ID out of a segment of notes. */
static void read_notes(const char *notes, size_t length, struct spw_module *module)
{
    ElfW(Nhdr) note;

    while (length >= sizeof(note)) {
        size_t name, data;

        memcpy(&note, notes, sizeof(note));
        name = sizeof(note) + ((note.n_namesz + 3) & ~(size_t)3);
        data = name + ((note.n_descsz + 3) & ~(size_t)3);
        if (data > length) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + sizeof(note), "GNU", 4) == 0) {
            module->id_bytes =
                (uint8_t)(note.n_descsz < SPW_MODULE_ID ? note.n_descsz : SPW_MODULE_ID);
            memcpy(module->id, notes + name, module->id_bytes);
            return;
        }
        notes += data;
        length -= data;
    }
}

static void describe(const struct dl_phdr_info *info, struct spw_module *ret_module)
{
    ret_module->base = info->dlpi_addr;
    ret_module->begin = UINTPTR_MAX;
    ret_module->end = 0;
    ret_module->dynamic = 0;
    ret_module->id_bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD) {
            ret_module->begin = at < ret_module->begin ? at : ret_module->begin;
            ret_module->end =
                at + segment->p_memsz > ret_module->end ? at + segment->p_memsz : ret_module->end;
        } else if (segment->p_type == PT_DYNAMIC) {
            ret_module->dynamic = at;
        } else if (segment->p_type == PT_NOTE && ret_module->id_bytes == 0) {
            read_notes((const char *)at, segment->p_memsz, ret_module);
        }
    }
}

static void name(const struct dl_phdr_info *info, struct spw_module *module)
{
    ssize_t length = 0;

    if (info->dlpi_name[0] == '\0') {
        length = readlink("/proc/self/exe", module->path, sizeof(module->path) - 1);
    } else if (strchr(info->dlpi_name, '/') != NULL &&
               spw_start_path(info->dlpi_name, module->path, sizeof(module->path))) {
        return;
    } else {
        length = (ssize_t)strnlen(info->dlpi_name, sizeof(module->path) - 1);
        memcpy(module->path, info->dlpi_name, (size_t)length);
    }
    module->path[length > 0 ? length : 0] = '\0';
}

static bool is_noted(const struct spw_module *module, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (modules->list[i].base == module->base && modules->list[i].begin == module->begin &&
            modules->list[i].dynamic == module->dynamic &&
            memcmp(modules->list[i].id, module->id, module->id_bytes) == 0) {
            return true;
        }
    }
    return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    uint64_t changes = info->dlpi_adds + info->dlpi_subs;
    uint64_t *known = context;
    struct spw_module *next;
    size_t count;

    if (changes == *known) {
        return 1;
    }
    spw_lock(&spw_locks.modules);
    count = atomic_load_explicit(&modules->count, memory_order_relaxed);
    if (count < SPW_MODULE_MOST) {
        next = &modules->list[count];
        describe(info, next);
        if (next->begin < next->end && !is_noted(next, count)) {
            name(info, next);
            atomic_store_explicit(&modules->count, count + 1, memory_order_release);
        }
    }
    spw_unlock(&spw_locks.modules);
    atomic_store_explicit(&modules->changes, changes, memory_order_relaxed);
    return 0;
}

void spw_callsite_modules_note(void)
{
    uint64_t known = atomic_load_explicit(&modules->changes, memory_order_relaxed);

    (void)spw_loader_iterate(visit, &known);
}

size_t spw_callsite_modules_count(void)
{
    return atomic_load_explicit(&modules->count, memory_order_acquire);
}

const struct spw_module *spw_callsite_modules_get(size_t number)
{
    return &modules->list[number];
}

bool spw_callsite_modules_add(const struct spw_module *module)
{
    size_t count;

    spw_lock(&spw_locks.modules);
    count = atomic_load_explicit(&modules->count, memory_order_relaxed);
    if (count < SPW_MODULE_MOST) {
        modules->list[count] = *module;
        atomic_store_explicit(&modules->count, count + 1, memory_order_release);
    }
    spw_unlock(&spw_locks.modules);
    return count < SPW_MODULE_MOST;
}

void spw_callsite_modules_read_with(spw_peek_function *read)
{
    atomic_store_explicit(&modules->read, read, memory_order_release);
}

bool spw_callsite_modules_read(uintptr_t address, void *ret_bytes, size_t bytes)
{
    spw_peek_function *read = atomic_load_explicit(&modules->read, memory_order_acquire);

    return read != NULL ? read(address, ret_bytes, bytes)
                        : spw_safe_read(address, ret_bytes, bytes);
}

const struct spw_module *spw_callsite_module_of(uintptr_t address)
{
    size_t count = atomic_load_explicit(&modules->count, memory_order_acquire);

    while (count-- > 0) {
        const struct spw_module *module = &modules->list[count];

        if (address >= module->begin && address < module->end) {
            return module;
        }
    }
    return NULL;
}
