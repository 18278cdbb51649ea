#include "companion/companion.h"

#include "common/options.h"
#include "companion/python.h"
#include "policy/modules.h"
#include "policy/open.h"
#include "policy/state.h"
#include "process/process.h"
#include "record/format.h"
#include "record/record.h"
#include "system/log.h"
#include "system/room.h"
#include "system/start.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { RULES_TEXT = 256 * 1024 };

/* Reads the companion from its file and calls it. An exception ends here: the program goes on. The
 * code has a name in place of its path. So the names of call sites treat its frames as generated
 * code, and not as the user's own code. */
static const char code[] =
    "def start(path, rules, say, mark):\n"
    "    try:\n"
    "        import sys\n"
    "        if 'torch' not in sys.modules or '_spillway_recompute' in sys.modules:\n"
    "            return\n"
    "        with open(path, 'rb') as file:\n"
    "            text = file.read()\n"
    "        module = type(sys)('_spillway_recompute')\n"
    "        module.__file__ = path\n"
    "        sys.modules[module.__name__] = module\n"
    "        exec(compile(text, '<spillway recompute>', 'exec'), module.__dict__)\n"
    "        module.enter(rules, say, mark)\n"
    "    except BaseException as error:\n"
    "        say('recompute: no module is computed again, because the companion '\n"
    "            f'{path} failed: {type(error).__name__}: {error}')\n"
    "        if isinstance(error, KeyboardInterrupt):\n"
    "            import _thread\n"
    "            _thread.interrupt_main()\n"
    "start(path, rules, say, mark)\n";

struct entering {
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];
    char rules[RULES_TEXT];
};

static void say(const char *text)
{
    spw_log_always("%s", text);
}

/* Writes to the recording, if there is one. The first character is the kind: '+' begins a mark and
 * '-' ends it, '=' lists the tensors of a pass, and '<' means that the backward pass reaches a
 * pass. */
static void mark(const char *text)
{
    if (!spw_record_active()) {
        return;
    }
    switch (*text) {
    case '+':
    case '-':
        spw_record_mark(text + 1, *text == '+');
        break;
    case '=':
        spw_record_pass(SPW_RECORD_PASS_TENSORS, text + 1);
        break;
    case '<':
        spw_record_pass(SPW_RECORD_PASS_BACKWARD, text + 1);
        break;
    default:
        break;
    }
}

/* Returns false if there is no file. */
static bool find_file(struct entering *entering)
{
    static const char *const places[] = {"python/recompute.py", "spillway/python/recompute.py"};
    const char *folder = spw_start_own_folder(entering->folder);

    for (size_t i = 0; folder != NULL && i < sizeof(places) / sizeof(*places); i++) {
        (void)snprintf(entering->path, sizeof(entering->path), "%s/%s", folder, places[i]);
        if (access(entering->path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

static bool records_modules(void)
{
    return spw_option_get(SPW_OPT_SPILLWAY_RECORD_MODULES, NULL, 0).on;
}

/* Reads the policy if there is one, and writes its rules about modules that concern this process.
 * Returns false if there is none. */
static bool read_rules(struct entering *entering)
{
    const struct spw_policy *policy;

    if (!spw_policy_open_mentions("\"recompute\"") ||
        spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word == SPW_MODE_OBSERVE) {
        return false;
    }
    spw_policy_open_once();
    policy = atomic_load(&spw_policy_state.policy);
    return policy != NULL && policy->recomputes != 0 &&
           spw_policy_modules_text(policy, spw_policy_state.process, spw_policy_state.rank,
                                   entering->rules, sizeof(entering->rules));
}

/* Writes the companion's task: rules about modules, or "record". Returns false if there is none. */
static bool find_task(struct entering *entering)
{
    if (!read_rules(entering)) {
        (void)snprintf(entering->rules, sizeof(entering->rules), "record");
        return records_modules();
    }
    if (records_modules()) {
        spw_log_always("recompute: SPILLWAY_RECORD_MODULES has no effect, because the policy has "
                       "rules about modules");
    }
    return true;
}

void spw_companion_enter(void)
{
    static const struct spw_companion_functions functions = {.say = say, .mark = mark};
    struct entering SPW_ROOM *entering = NULL;
    int saved = errno;

    if (spw_process_off() || (!spw_policy_open_mentions("\"recompute\"") && !records_modules()) ||
        !spw_companion_python_runs() || (entering = spw_room_take(sizeof(*entering))) == NULL) {
        errno = saved;
        return;
    }
    if (!find_task(entering)) {
        errno = saved;
        return;
    }
    if (!find_file(entering)) {
        spw_log_always("recompute: no module is computed again, because the file "
                       "python/recompute.py is not beside libspillway.so");
    } else if (!spw_companion_python_run(code, entering->path, entering->rules, &functions)) {
        spw_log_always("recompute: no module is computed again, because this interpreter cannot "
                       "run the companion");
    }
    errno = saved;
}
