#include "cli/cudnn/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From cudnn.h, which is not needed to build the command. */
enum {
    CUDNN_9_8 = 90800,
    ENGINE_DESCRIPTOR = 2,
    ENGINECFG_DESCRIPTOR = 3,
    ENGINEHEUR_DESCRIPTOR = 4,
    DEVICEPROP_DESCRIPTOR = 38,
    ENGINEHEUR_RESULTS = 202,
    ENGINEHEUR_DEVICEPROP = 204,
    ENGINECFG_ENGINE = 300,
    ENGINECFG_WORKSPACE_SIZE = 303,
    ENGINE_GLOBAL_INDEX = 1301,
    ENGINE_NUMERICAL_NOTE = 1303,
    ENGINE_BEHAVIOR_NOTE = 1305,
    DEVICEPROP_JSON = 2702,
    TYPE_INT64 = 3,
    TYPE_NUMERICAL_NOTE = 11,
    TYPE_DESCRIPTOR = 15,
    TYPE_BEHAVIOR_NOTE = 19,
    TYPE_CHAR = 24,
};

/* DEEPEST: descriptors inside descriptors. CHILDREN: descriptors in one attribute. DESCRIPTORS: all
 * descriptors of a question. */
enum { DEEPEST = 8, CHILDREN = 64, DESCRIPTORS = 4096, NOTES = 32 };

static struct {
    char path[PATH_MAX]; /* of the library that is loaded; "": none was asked for yet */
    char tf32[64];       /* the value of SIM_CUDNN_TF32 for which it was loaded */
    bool usable;
    size_t (*version)(void);
    int (*create)(int kind, void **ret_descriptor);
    int (*destroy)(void *descriptor);
    int (*set)(void *descriptor, int name, int type, int64_t count, const void *elements);
    int (*get)(void *descriptor, int name, int type, int64_t count, int64_t *ret_count,
               void *ret_elements);
    int (*finalize)(void *descriptor);
} cudnn;

/* The device of the last question. */
static struct {
    char properties[4096];
    void *descriptor;
} device;

/* The descriptors of the present question. A descriptor may refer to others, so all of them are
 * kept until it is answered. */
static struct {
    void *descriptors[DESCRIPTORS];
    size_t count;
} question;

/* ---- the library ---- */

/* The symbols have no C type, so each address is copied into a pointer to a function. */
static bool look_up(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);

    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

/* True if nobody but this user and root can have written the file: its code will run here. */
static bool is_trusted(const char *path)
{
    struct stat status;

    return path[0] == '/' && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           (status.st_uid == 0 || status.st_uid == geteuid()) &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool load(const char *path)
{
    void *library = is_trusted(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    return library != NULL && look_up(library, "cudnnGetVersion", &cudnn.version) &&
           look_up(library, "cudnnBackendCreateDescriptor", &cudnn.create) &&
           look_up(library, "cudnnBackendDestroyDescriptor", &cudnn.destroy) &&
           look_up(library, "cudnnBackendSetAttribute", &cudnn.set) &&
           look_up(library, "cudnnBackendGetAttribute", &cudnn.get) &&
           look_up(library, "cudnnBackendFinalize", &cudnn.finalize) &&
           cudnn.version() >= CUDNN_9_8;
}

/* The library reads the variable when it is loaded. */
static bool is_loaded(const char *path, const char *tf32)
{
    if (cudnn.path[0] == '\0') {
        (void)snprintf(cudnn.path, sizeof(cudnn.path), "%s", path);
        (void)snprintf(cudnn.tf32, sizeof(cudnn.tf32), "%s", tf32);
        if (tf32[0] != '\0') {
            setenv(SIM_CUDNN_TF32, tf32, 1);
        } else {
            unsetenv(SIM_CUDNN_TF32);
        }
        cudnn.usable = load(path);
    }
    return cudnn.usable && strcmp(cudnn.path, path) == 0 && strcmp(cudnn.tf32, tf32) == 0;
}

/* ---- descriptors ---- */

/* Frees a descriptor. Takes NULL. */
static void end(void *descriptor)
{
    if (descriptor != NULL) {
        (void)cudnn.destroy(descriptor);
    }
}

static void *create(int kind)
{
    void *descriptor = NULL;

    return cudnn.create(kind, &descriptor) == 0 ? descriptor : NULL;
}

/* Creates a descriptor that is freed when the question is answered. */
static void *create_for_question(int kind)
{
    void *descriptor = question.count < DESCRIPTORS ? create(kind) : NULL;

    if (descriptor != NULL) {
        question.descriptors[question.count++] = descriptor;
    }
    return descriptor;
}

static void end_question(void)
{
    while (question.count > 0) {
        end(question.descriptors[--question.count]);
    }
}

static bool select_device(const char *properties)
{
    if (device.descriptor != NULL && strcmp(device.properties, properties) == 0) {
        return true;
    }
    end(device.descriptor);
    device.descriptor = create(DEVICEPROP_DESCRIPTOR);
    (void)snprintf(device.properties, sizeof(device.properties), "%s", properties);
    if (device.descriptor != NULL &&
        cudnn.set(device.descriptor, DEVICEPROP_JSON, TYPE_CHAR, (int64_t)strlen(properties),
                  properties) == 0 &&
        cudnn.finalize(device.descriptor) == 0) {
        return true;
    }
    end(device.descriptor);
    device.descriptor = NULL;
    return false;
}

/* The part of a content that is not read yet. */
struct rest {
    const unsigned char *at;
    size_t bytes;
};

static bool take(struct rest *rest, void *to, size_t bytes)
{
    if (rest->bytes < bytes) {
        return false;
    }
    memcpy(to, rest->at, bytes);
    rest->at += bytes;
    rest->bytes -= bytes;
    return true;
}

/* Takes a text that ends with a 0 byte; NULL if there is none. */
static const char *take_text(struct rest *rest)
{
    const char *text = (const char *)rest->at;
    size_t length = strnlen(text, rest->bytes);

    if (length == rest->bytes) {
        return NULL;
    }
    rest->at += length + 1;
    rest->bytes -= length + 1;
    return text;
}

static void *read_descriptor(struct rest *rest, int depth);

/* Reads and sets an attribute that consists of descriptors. */
static bool read_children(struct rest *rest, int depth, void *holder,
                          const struct sim_cudnn_leaf *leaf)
{
    void *children[CHILDREN];

    if (leaf->count < 0 || leaf->count > CHILDREN) {
        return false;
    }
    for (int32_t i = 0; i < leaf->count; i++) {
        children[i] = read_descriptor(rest, depth + 1);
        if (children[i] == NULL) {
            return false;
        }
    }
    return cudnn.set(holder, leaf->name, leaf->type, leaf->count, children) == 0;
}

static bool read_attribute(struct rest *rest, int depth, void *holder)
{
    unsigned char elements[1024];
    struct sim_cudnn_leaf leaf;

    if (!take(rest, &leaf, sizeof(leaf))) {
        return false;
    }
    if (leaf.type == TYPE_DESCRIPTOR) {
        return read_children(rest, depth, holder, &leaf);
    }
    return leaf.bytes >= 0 && (size_t)leaf.bytes <= sizeof(elements) && leaf.count >= 0 &&
           leaf.count <= leaf.bytes && take(rest, elements, (size_t)leaf.bytes) &&
           cudnn.set(holder, leaf.name, leaf.type, leaf.count, elements) == 0;
}

/* Reads a descriptor and finalizes it. Returns NULL if it is malformed, or if the library refuses
 * it. */
static void *read_descriptor(struct rest *rest, int depth)
{
    struct sim_cudnn_node node;
    void *descriptor;
    bool good;

    if (depth > DEEPEST || !take(rest, &node, sizeof(node))) {
        return NULL;
    }
    descriptor = create_for_question(node.kind);
    good = descriptor != NULL;
    for (int32_t i = 0; i < node.count && good; i++) {
        good = read_attribute(rest, depth, descriptor);
    }
    if (good && node.kind == ENGINEHEUR_DESCRIPTOR) {
        good = cudnn.set(descriptor, ENGINEHEUR_DEVICEPROP, TYPE_DESCRIPTOR, 1,
                         &device.descriptor) == 0;
    }
    return good && cudnn.finalize(descriptor) == 0 ? descriptor : NULL;
}

/* ---- answers ---- */

static bool read_integer(void *descriptor, int name, int64_t *ret_value)
{
    int64_t count = 0;

    return cudnn.get(descriptor, name, TYPE_INT64, 1, &count, ret_value) == 0 && count == 1;
}

static uint32_t read_notes(void *engine, int name, int type)
{
    int32_t notes[NOTES];
    int64_t count = 0;
    uint32_t set = 0;

    if (cudnn.get(engine, name, type, NOTES, &count, notes) != 0) {
        return 0;
    }
    for (int64_t i = 0; i < count && i < NOTES; i++) {
        set |= notes[i] >= 0 && notes[i] < NOTES ? UINT32_C(1) << notes[i] : 0;
    }
    return set;
}

static bool describe(void *config, struct sim_cudnn_engine *ret_engine)
{
    void *engine = create_for_question(ENGINE_DESCRIPTOR);
    int64_t count = 0;
    bool good = engine != NULL &&
                cudnn.get(config, ENGINECFG_ENGINE, TYPE_DESCRIPTOR, 1, &count, &engine) == 0 &&
                read_integer(engine, ENGINE_GLOBAL_INDEX, &ret_engine->index) &&
                read_integer(config, ENGINECFG_WORKSPACE_SIZE, &ret_engine->workspace_bytes);

    if (good) {
        ret_engine->numerical_notes =
            read_notes(engine, ENGINE_NUMERICAL_NOTE, TYPE_NUMERICAL_NOTE);
        ret_engine->behavior_notes = read_notes(engine, ENGINE_BEHAVIOR_NOTE, TYPE_BEHAVIOR_NOTE);
    }
    return good;
}

/* Writes the engines that the heuristics have found. Configurations that cannot be described are
 * left out. */
static size_t read_results(void *heuristics, struct sim_cudnn_engine *ret_engines)
{
    static void *configs[SIM_CUDNN_ENGINES];
    int64_t count = 0;
    size_t made = 0, found = 0;

    if (cudnn.get(heuristics, ENGINEHEUR_RESULTS, TYPE_DESCRIPTOR, 0, &count, NULL) != 0) {
        return 0;
    }
    while (made < SIM_CUDNN_ENGINES && (int64_t)made < count &&
           (configs[made] = create_for_question(ENGINECFG_DESCRIPTOR)) != NULL) {
        made++;
    }
    count = 0;
    if (made > 0 && cudnn.get(heuristics, ENGINEHEUR_RESULTS, TYPE_DESCRIPTOR, (int64_t)made,
                              &count, configs) != 0) {
        count = 0;
    }
    for (size_t i = 0; i < made; i++) {
        found += (int64_t)i < count && describe(configs[i], &ret_engines[found]);
    }
    return found;
}

size_t spw_cli_cudnn_version(const char *path)
{
    return load(path) ? cudnn.version() : 0;
}

bool spw_cli_cudnn_answer(const unsigned char *content, size_t bytes,
                          struct sim_cudnn_engine *ret_engines, size_t *ret_count)
{
    struct rest rest = {.at = content, .bytes = bytes};
    const char *path = take_text(&rest);
    const char *tf32 = path != NULL ? take_text(&rest) : NULL;
    const char *properties = tf32 != NULL ? take_text(&rest) : NULL;
    void *heuristics;

    if (properties == NULL || !is_loaded(path, tf32) || !select_device(properties)) {
        return false;
    }
    heuristics = read_descriptor(&rest, 0);
    *ret_count = heuristics != NULL ? read_results(heuristics, ret_engines) : 0;
    end_question();
    return true;
}
