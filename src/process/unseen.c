#include "process/unseen.h"

#include "common/path.h"
#include "process/state.h"
#include "system/loader.h"
#include "system/log.h"

#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const char *const libraries[] = {
#define SPW_UNSEEN(name, why) name,
#include "process/unseen.def"
#undef SPW_UNSEEN
};

static struct spw_process_unseen *const known = &spw_process.unseen;

/* One look at the list. */
struct look {
    bool began;
    uint64_t changes;
    const char *found; /* NULL: none of the libraries */
};

static const char *find(const char *path)
{
    const char *name = spw_path_name(path);

    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (strncmp(name, libraries[i], strlen(libraries[i])) == 0) {
            return libraries[i];
        }
    }
    return NULL;
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct look *look = context;

    if (!look->began) {
        look->changes = info->dlpi_adds + info->dlpi_subs;
        if (look->changes == atomic_load_explicit(&known->changes, memory_order_relaxed)) {
            return 1;
        }
        look->began = true;
    }
    look->found = find(info->dlpi_name);
    return look->found != NULL;
}

bool spw_process_unseen(void)
{
    struct look look = {0};

    if (atomic_load_explicit(&known->loaded, memory_order_relaxed)) {
        return true;
    }
    (void)spw_loader_iterate(visit, &look);
    if (look.found != NULL) {
        if (!atomic_exchange(&known->loaded, true)) {
            spw_log(SPW_LOG_INFO,
                    "%s is loaded: from now on no block moves between device and host, since "
                    "spillway does not see the work that this library submits",
                    look.found);
        }
    } else if (look.began) {
        atomic_store_explicit(&known->changes, look.changes, memory_order_relaxed);
    }
    return look.found != NULL;
}
