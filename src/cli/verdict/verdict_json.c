#include "cli/verdict/outputs.h"

#include "cli/console/json.h"
#include "cli/verdict/need.h"
#include "cli/verdict/step.h"
#include "common/host_bound.h"

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

static void add_refusal(cJSON *object, const struct spw_cli_sim_device *device)
{
    cJSON *refusal;

    if (device->refusals == 0) {
        cJSON_AddNullToObject(object, "last_oom");
        return;
    }
    refusal = cJSON_AddObjectToObject(object, "last_oom");
    cJSON_AddStringToObject(refusal, "api", device->last.api);
    spw_cli_json_add(refusal, "bytes", device->last.bytes);
    spw_cli_json_add(refusal, "missing_bytes", device->last.missing_bytes);
    cJSON_AddBoolToObject(refusal, "succeeded_later", device->last.overcome);
}

static void add_terms(cJSON *object, const struct spw_cli_need *need)
{
    cJSON *terms = cJSON_AddArrayToObject(object, "card_terms");

    for (int i = 0; i < SPW_CLI_TERMS; i++) {
        cJSON *term;

        if (i == SPW_CLI_TERM_HOST && need->terms[i].bytes == 0) {
            continue; /* the device has memory of its own */
        }
        term = cJSON_CreateObject();
        cJSON_AddStringToObject(term, "term", spw_cli_need_term_name(i));
        spw_cli_json_add(term, "bytes", need->terms[i].bytes);
        spw_cli_json_add(term, "most_bytes", need->terms[i].most);
        cJSON_AddStringToObject(term, "basis", spw_cli_need_basis_name(need->terms[i].basis));
        cJSON_AddItemToArray(terms, term);
    }
}

static void add_engines(cJSON *object, const struct spw_cli_sim_device *device)
{
    cJSON *engines = cJSON_AddObjectToObject(object, "cudnn_graphs");

    spw_cli_json_add(engines, "asked", device->engines_asked);
    spw_cli_json_add(engines, "guessed", device->engines_guessed);
    spw_cli_json_add(engines, "searched", device->searches);
}

static void add_step(cJSON *object, const struct spw_cli_sim_device *device)
{
    const struct spw_gpu_profile *card = spw_cli_cards_profile();
    struct spw_cli_range time = spw_cli_step_time(device, card, card);
    struct spw_cli_range slowdown =
        spw_cli_step_slowdown(time, card, device->step_out_bytes, device->step_in_bytes);
    uint64_t arithmetic = 0;
    cJSON *step;

    if (time.most <= 0) {
        cJSON_AddNullToObject(object, "step");
        return;
    }
    step = cJSON_AddObjectToObject(object, "step");
    spw_cli_step_json(step, "ms", time, 1e-6);
    if (slowdown.most > 0) {
        spw_cli_step_json(step, "times_as_long_by_spilling", slowdown, 1);
    }
    cJSON_AddStringToObject(step, "basis", "roofline");
    spw_cli_json_add(step, "estimate_ns", device->step.ns);
    spw_cli_json_add(step, "kernels", device->step.launches);
    spw_cli_json_add(step, "kernels_ns", device->step.busy_ns);
    for (int type = 0; type < SPW_GPU_TYPES; type++) {
        arithmetic += device->step.computing_ns[type];
    }
    spw_cli_json_add(step, "arithmetic_ns", arithmetic);
    spw_cli_json_add(step, "memory_ns", device->step.moving_ns);
    spw_cli_json_add(step, "known_kernels_ns", device->step.sure_ns);
    spw_cli_json_add(step, "launches_ns", device->step.host_ns);
}

static cJSON *device_json(const struct spw_cli_sim_result *result,
                          const struct spw_cli_sim_device *device)
{
    int ordinal;
    const struct spw_cli_sim_process *process = spw_cli_sim_process_of(result, device, &ordinal);
    struct spw_cli_need need = spw_cli_need_here(device);
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "process", process->name);
    cJSON_AddNumberToObject(object, "pid", process->pid);
    cJSON_AddNumberToObject(object, "device", ordinal);
    cJSON_AddNumberToObject(object, "index", device->index);
    spw_cli_json_add(object, "shared_peak_bytes", device->shared_peak_bytes);
    cJSON_AddBoolToObject(object, "pooled", device->pooled);
    spw_cli_json_add(object, "total_bytes", device->total_bytes);
    spw_cli_json_add(object, "live_peak_bytes", device->live_peak_bytes);
    spw_cli_json_add(object, "used_peak_bytes", device->used_peak_bytes);
    spw_cli_json_add(object, "spare_bytes", need.spare);
    spw_cli_json_add(object, "program_bytes", need.terms[SPW_CLI_TERM_PROGRAM].bytes);
    spw_cli_json_add(object, "card_besides_bytes", need.besides);
    spw_cli_json_add(object, "card_besides_most_bytes", need.besides_most);
    spw_cli_json_add(object, "card_need_bytes", need.in_all);
    if (device->lost == 0) {
        spw_cli_json_add(object, "card_need_most_bytes", need.in_all_most);
    } else {
        cJSON_AddNullToObject(object, "card_need_most_bytes");
    }
    add_terms(object, &need);
    add_engines(object, device);
    add_step(object, device);
    spw_cli_json_add(object, "communicators", device->communicators);
    spw_cli_json_add(object, "communicator_ranks", device->ranks);
    spw_cli_json_add(object, "host_peak_bytes", device->host_peak_bytes);
    spw_cli_json_add(object, "host_limit_bytes", device->host_limit_bytes);
    cJSON_AddStringToObject(object, "host_bound", spw_host_bound_key(device->host_bound));
    spw_cli_json_add(object, "placed_peak_bytes", device->placed_peak_bytes);
    spw_cli_json_add(object, "spilled_bytes", device->spilled_bytes);
    spw_cli_json_add(object, "promoted_bytes", device->promoted_bytes);
    spw_cli_json_add(object, "paused_bytes", device->paused_bytes);
    spw_cli_json_add(object, "ooms", device->refusals);
    spw_cli_json_add(object, "ooms_for_good", device->lost);
    add_refusal(object, device);
    return object;
}

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
        spw_cli_json_add(device, "processes", count);
        spw_cli_json_add(device, "used_peak_bytes", result->shared_peaks[index]);
        spw_cli_json_add(device, "card_need_bytes", need.in_all);
        spw_cli_json_add(device, "card_need_most_bytes", need.in_all_most);
        cJSON_AddItemToArray(list, device);
    }
}

static void add_cards(cJSON *object, const struct spw_cli_sim_result *result)
{
    cJSON *list = cJSON_AddArrayToObject(object, "cards");
    struct spw_cli_cards cards;

    spw_cli_need_cards(result, &cards);
    for (size_t i = 0; i < cards.count; i++) {
        cJSON_AddItemToArray(list, cJSON_CreateString(cards.list[i]->id));
    }
    spw_cli_json_add(object, "cards_that_fit", spw_cli_need_fitting(result, &cards));
}

static void add_rules(cJSON *object, const struct spw_cli_sim_result *result)
{
    cJSON *list = cJSON_AddArrayToObject(object, "placed_by_rules");

    for (size_t i = 0; i < result->rule_count; i++) {
        cJSON *rule = cJSON_CreateObject();

        cJSON_AddStringToObject(rule, "name", result->rules[i].name);
        spw_cli_json_add(rule, "host_peak_bytes", result->rules[i].host_peak_bytes);
        cJSON_AddItemToArray(list, rule);
    }
}

cJSON *spw_cli_verdict_json(const struct spw_cli_sim_result *result, int code)
{
    const struct spw_cli_sim_device *device = NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON *devices;

    cJSON_AddStringToObject(object, "verdict", spw_cli_verdict_json_name(result, code));
    if (result->lost > 0) {
        cJSON_AddStringToObject(object, "problem", result->problem);
    }
    cJSON_AddNumberToObject(object, "exit_code", code);
    cJSON_AddStringToObject(object, "profile", spw_cli_cards_profile()->id);
    add_cards(object, result);
    spw_cli_json_add(object, "host_peak_bytes", result->host_peak_bytes);
    devices = cJSON_AddArrayToObject(object, "devices");
    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        if (device->used) {
            cJSON_AddItemToArray(devices, device_json(result, device));
        }
    }
    add_shared_devices(object, result);
    add_rules(object, result);
    return object;
}
