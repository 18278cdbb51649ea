#include "companion/python.h"

#include "driver/dl.h"

#include <stddef.h>
#include <stdint.h>

/* CPython's PyObject, PyMethodDef and constants, which are the same in all versions. */
struct object;
struct method {
    const char *name;
    struct object *(*function)(struct object *self, struct object *argument);
    int flags;
    const char *help;
};
enum { ONE_ARGUMENT = 0x0008, WHOLE_FILE = 257 };

struct python {
    int (*is_initialized)(void);
    int (*holds_lock)(void);
    struct object *(*raised)(void);
    void (*clear)(void);
    struct object *(*new_dict)(void);
    int (*set_item)(struct object *dict, const char *key, struct object *value);
    struct object *(*builtins)(void);
    struct object *(*new_path)(const char *text);
    struct object *(*new_string)(const char *text);
    const char *(*string)(struct object *string);
    struct object *(*new_function)(struct method *method, struct object *self,
                                   struct object *module);
    struct object *(*run)(const char *code, int start, struct object *globals,
                          struct object *locals, void *flags);
    void (*take)(struct object *object);
    void (*give)(struct object *object);
};

#define FIND(member, name)                                                                         \
    ((ret_python->member =                                                                         \
          (__typeof__(ret_python->member))(uintptr_t)spw_driver_dl_symbol_anywhere(name)) != NULL)

static bool find(struct python *ret_python)
{
    return FIND(is_initialized, "Py_IsInitialized") && FIND(holds_lock, "PyGILState_Check") &&
           FIND(raised, "PyErr_Occurred") && FIND(clear, "PyErr_Clear") &&
           FIND(new_dict, "PyDict_New") && FIND(set_item, "PyDict_SetItemString") &&
           FIND(builtins, "PyEval_GetBuiltins") && FIND(new_path, "PyUnicode_DecodeFSDefault") &&
           FIND(new_string, "PyUnicode_FromString") && FIND(string, "PyUnicode_AsUTF8") &&
           FIND(new_function, "PyCFunction_NewEx") && FIND(run, "PyRun_StringFlags") &&
           FIND(take, "Py_IncRef") && FIND(give, "Py_DecRef");
}

/* What the functions of the companion need. The definition of a function must outlive the
 * function. */
static struct {
    struct spw_companion_functions functions;
    const char *(*string)(struct object *string);
    void (*take)(struct object *object);
    struct method say, mark;
} called;

static struct object *call(spw_companion_function *function, struct object *argument)
{
    const char *text = called.string(argument);

    if (text == NULL) {
        return NULL; /* with an exception */
    }
    function(text);
    called.take(argument);
    return argument;
}

static struct object *say(struct object *self, struct object *argument)
{
    return call(called.functions.say, argument);
}

static struct object *mark(struct object *self, struct object *argument)
{
    return call(called.functions.mark, argument);
}

/* Puts a new object into a dictionary, and gives up the reference to the object. */
static bool put(const struct python *python, struct object *dict, const char *key,
                struct object *value)
{
    bool done = value != NULL && python->set_item(dict, key, value) == 0;

    if (value != NULL) {
        python->give(value);
    }
    return done;
}

bool spw_companion_python_runs(void)
{
    struct python python;

    return find(&python) && python.is_initialized() != 0 && python.holds_lock() == 1 &&
           python.raised() == NULL;
}

bool spw_companion_python_run(const char *code, const char *path, const char *rules,
                              const struct spw_companion_functions *functions)
{
    struct python python;
    struct object *names, *builtins, *result = NULL;

    if (!find(&python) || (names = python.new_dict()) == NULL) {
        return false;
    }
    called.functions = *functions;
    called.string = python.string;
    called.take = python.take;
    called.say = (struct method){"say", say, ONE_ARGUMENT, NULL};
    called.mark = (struct method){"mark", mark, ONE_ARGUMENT, NULL};
    builtins = python.builtins(); /* borrowed */
    if (builtins != NULL && python.set_item(names, "__builtins__", builtins) == 0 &&
        put(&python, names, "path", python.new_path(path)) &&
        put(&python, names, "rules", python.new_string(rules)) &&
        put(&python, names, "say", python.new_function(&called.say, NULL, NULL)) &&
        put(&python, names, "mark", python.new_function(&called.mark, NULL, NULL))) {
        result = python.run(code, WHOLE_FILE, names, names, NULL);
    }
    if (result != NULL) {
        python.give(result);
    }
    python.clear();
    python.give(names);
    return result != NULL;
}
