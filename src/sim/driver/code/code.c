#include "sim/driver/code/code.h"

#include <stdlib.h>
#include <string.h>

#include "sim/driver/code/unpack.h"

struct sim_code {
    struct sim_packed packed; /* the cubin to read; no data: already read */
    unsigned char *copy;      /* copy of the packed data, if the program may free them */
    struct sim_layouts *layouts;
};

/* Frees the copy and forgets the packed data. */
static void drop_packed(struct sim_code *code)
{
    free(code->copy);
    code->copy = NULL;
    code->packed.data = NULL;
}

static bool copy_packed(struct sim_code *code)
{
    code->copy = malloc(code->packed.bytes);
    if (code->copy == NULL) {
        return false;
    }
    memcpy(code->copy, code->packed.data, code->packed.bytes);
    code->packed.data = code->copy;
    return true;
}

struct sim_code *sim_code_of_fatbin(const struct sim_fatbin_choice *choice, bool kept)
{
    struct sim_code *code = choice->cubin.data == NULL ? NULL : calloc(1, sizeof(*code));

    if (code == NULL) {
        return NULL;
    }
    code->packed = choice->cubin;
    if (!kept && !copy_packed(code)) {
        free(code);
        return NULL;
    }
    return code;
}

struct sim_code *sim_code_of_cubin(const struct sim_cubin *cubin)
{
    struct sim_code *code = calloc(1, sizeof(*code));

    if (code != NULL) {
        code->layouts = sim_layouts_read(cubin);
    }
    return code;
}

static void read_packed(struct sim_code *code)
{
    size_t size;
    unsigned char *data = sim_unpack(&code->packed, &size);
    struct sim_cubin cubin;

    if (data != NULL && sim_cubin_open(data, size, &cubin)) {
        code->layouts = sim_layouts_read(&cubin);
    }
    if (data != NULL) {
        sim_unpack_free(&code->packed, data);
    }
    drop_packed(code);
}

const struct sim_param_place *sim_code_params(struct sim_code *code, const char *name,
                                              size_t *ret_count)
{
    if (code == NULL) {
        return NULL;
    }
    if (code->packed.data != NULL) {
        read_packed(code);
    }
    return code->layouts == NULL ? NULL : sim_layouts_find(code->layouts, name, ret_count);
}

void sim_code_free(struct sim_code *code)
{
    if (code != NULL) {
        drop_packed(code);
        sim_layouts_free(code->layouts);
        free(code);
    }
}
