#include "cli/verdict/verdict_json.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/verdict/need.h"
#include "common/create.h"

const char *spw_cli_verdict_json_name(const struct spw_cli_sim_result *result, int code)
{
    switch (spw_cli_sim_result_outcome(result, code)) {
    case SPW_CLI_SIM_UNUSED:
        return "unused";
    case SPW_CLI_SIM_UNRECORDED:
        return "not recorded";
    case SPW_CLI_SIM_FITS:
        return spw_cli_need_fits(result) ? "fits" : "fits too tightly";
    case SPW_CLI_SIM_SPILLS:
        return "spills";
    case SPW_CLI_SIM_CONTINUED:
        return "continued";
    case SPW_CLI_SIM_DOES_NOT_FIT:
        return "does not fit";
    case SPW_CLI_SIM_FAILED:
        break;
    }
    return "failed";
}

static void add_bytes(cJSON *object, const char *key, uint64_t bytes)
{
    cJSON_AddNumberToObject(object, key, (double)bytes);
}

static void add_refusal(cJSON *object, const struct spw_cli_sim_device *device)
{
    cJSON *refusal;

    if (device->refusals == 0) {
        cJSON_AddNullToObject(object, "last_oom");
        return;
    }
    refusal = cJSON_AddObjectToObject(object, "last_oom");
    cJSON_AddStringToObject(refusal, "api", device->last.api);
    add_bytes(refusal, "bytes", device->last.bytes);
    add_bytes(refusal, "missing_bytes", device->last.missing_bytes);
    cJSON_AddBoolToObject(refusal, "succeeded_later", device->last.overcome);
}

static void add_terms(cJSON *object, const struct spw_cli_need *need)
{
    cJSON *terms = cJSON_AddArrayToObject(object, "card_terms");

    for (int i = 0; i < SPW_CLI_TERMS; i++) {
        cJSON *term = cJSON_CreateObject();

        cJSON_AddStringToObject(term, "term", spw_cli_need_term_name(i));
        add_bytes(term, "bytes", need->terms[i].bytes);
        add_bytes(term, "most_bytes", need->terms[i].most);
        cJSON_AddStringToObject(term, "basis", spw_cli_need_basis_name(need->terms[i].basis));
        cJSON_AddItemToArray(terms, term);
    }
}

static cJSON *device_json(const struct spw_cli_sim_process *process, int ordinal)
{
    const struct spw_cli_sim_device *device = &process->devices[ordinal];
    struct spw_cli_need need = spw_cli_need_here(device);
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "process", process->name);
    cJSON_AddNumberToObject(object, "pid", process->pid);
    cJSON_AddNumberToObject(object, "device", ordinal);
    cJSON_AddNumberToObject(object, "index", device->index);
    add_bytes(object, "shared_peak_bytes", device->shared_peak_bytes);
    cJSON_AddBoolToObject(object, "pooled", device->pooled);
    add_bytes(object, "total_bytes", device->total_bytes);
    add_bytes(object, "live_peak_bytes", device->live_peak_bytes);
    add_bytes(object, "used_peak_bytes", device->used_peak_bytes);
    add_bytes(object, "spare_bytes", need.spare);
    add_bytes(object, "program_bytes", need.terms[SPW_CLI_TERM_PROGRAM].bytes);
    add_bytes(object, "card_besides_bytes", need.besides);
    add_bytes(object, "card_besides_most_bytes", need.besides_most);
    add_bytes(object, "card_need_bytes", need.in_all);
    if (device->lost == 0) {
        add_bytes(object, "card_need_most_bytes", need.in_all_most);
    } else {
        cJSON_AddNullToObject(object, "card_need_most_bytes");
    }
    add_terms(object, &need);
    add_bytes(object, "communicators", device->communicators);
    add_bytes(object, "communicator_ranks", device->ranks);
    add_bytes(object, "host_peak_bytes", device->host_peak_bytes);
    add_bytes(object, "placed_peak_bytes", device->placed_peak_bytes);
    add_bytes(object, "spilled_bytes", device->spilled_bytes);
    add_bytes(object, "promoted_bytes", device->promoted_bytes);
    add_bytes(object, "paused_bytes", device->paused_bytes);
    add_bytes(object, "ooms", device->refusals);
    add_bytes(object, "ooms_for_good", device->lost);
    add_refusal(object, device);
    return object;
}

/* Adds the devices whose memory several processes held at the same time. */
static void add_shared_devices(cJSON *object, const struct spw_cli_sim_result *result)
{
    cJSON *list = cJSON_AddArrayToObject(object, "shared_devices");

    for (int index = 0; index < SPW_DEVICES_MAX; index++) {
        size_t count = spw_cli_sim_result_sharers(result, index);
        struct spw_cli_need need;
        cJSON *device;

        if (count < 2) {
            continue;
        }
        need = spw_cli_need_of_sharers(result, index);
        device = cJSON_CreateObject();
        cJSON_AddNumberToObject(device, "index", index);
        cJSON_AddNumberToObject(device, "processes", (double)count);
        add_bytes(device, "used_peak_bytes", result->shared_peaks[index]);
        add_bytes(device, "card_need_bytes", need.in_all);
        add_bytes(device, "card_need_most_bytes", need.in_all_most);
        cJSON_AddItemToArray(list, device);
    }
}

/* Adds the cards of the verdict. */
static void add_cards(cJSON *object, const struct spw_cli_sim_result *result)
{
    cJSON *list = cJSON_AddArrayToObject(object, "cards");
    struct spw_cli_cards cards;

    spw_cli_need_cards(result, &cards);
    for (size_t i = 0; i < cards.count; i++) {
        cJSON_AddItemToArray(list, cJSON_CreateString(cards.list[i]->id));
    }
    add_bytes(object, "cards_that_fit", spw_cli_need_fitting(result, &cards));
}

static void add_rules(cJSON *object, const struct spw_cli_sim_result *result)
{
    cJSON *list = cJSON_AddArrayToObject(object, "placed_by_rules");

    for (size_t i = 0; i < result->rule_count; i++) {
        cJSON *rule = cJSON_CreateObject();

        cJSON_AddStringToObject(rule, "name", result->rules[i].name);
        add_bytes(rule, "host_peak_bytes", result->rules[i].host_peak_bytes);
        cJSON_AddItemToArray(list, rule);
    }
}

cJSON *spw_cli_verdict_json(const struct spw_cli_sim_result *result, int code)
{
    cJSON *object = cJSON_CreateObject();
    cJSON *devices;

    cJSON_AddStringToObject(object, "verdict", spw_cli_verdict_json_name(result, code));
    if (result->lost > 0) {
        cJSON_AddStringToObject(object, "problem", result->problem);
    }
    cJSON_AddNumberToObject(object, "exit_code", code);
    cJSON_AddStringToObject(object, "profile", spw_cli_cards_profile()->id);
    add_cards(object, result);
    add_bytes(object, "host_peak_bytes", spw_cli_sim_result_host_peak(result));
    devices = cJSON_AddArrayToObject(object, "devices");
    for (size_t i = 0; i < result->count; i++) {
        for (int k = 0; k < result->processes[i].device_count; k++) {
            if (result->processes[i].devices[k].used) {
                cJSON_AddItemToArray(devices, device_json(&result->processes[i], k));
            }
        }
    }
    add_shared_devices(object, result);
    add_rules(object, result);
    return object;
}

bool spw_cli_verdict_json_write(const char *command, cJSON *json, const char *path)
{
    bool good = spw_cli_json_write(json, path);

    if (!good) {
        spw_cli_complain(command, "--json=%s: %s", path, spw_create_problem(path));
    }
    return good;
}
