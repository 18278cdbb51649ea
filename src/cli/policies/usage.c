#include "cli/policies/decision.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The memory of a device that one rule decides, or that no rule decides. */
struct share {
    uint64_t bytes, sites;
    uint64_t possible; /* bytes that the rule decides for some sizes or numbers */
};

/* The program's name in conditions: the script's name, which follows the interpreter's name. */
static const char *process_of(const cJSON *json)
{
    const char *name = spw_cli_json_text(json, "process");
    const char *blank = name != NULL ? strrchr(name, ' ') : NULL;

    return blank != NULL ? blank + 1 : name;
}

/* Returns true if a rule matches, without its conditions on the size and the number of an
 * allocation. *ret_depends is true if the rule has such conditions. */
static bool matches(const struct spw_policy_rule *rule, const struct spw_callsite_facts *site,
                    const struct spw_request_facts *request, bool *ret_depends)
{
    struct spw_policy_rule without = *rule; /* shares the lists */

    *ret_depends = rule->match.size.count > 0 || rule->match.nth.count > 0 ||
                   rule->match.nth_in_step.count > 0;
    without.match.size.count = 0;
    without.match.nth.count = 0;
    without.match.nth_in_step.count = 0;
    return spw_policy_mismatch(&without, site, request) == NULL;
}

/* Adds a site to the share of the rule that matches the site. If no rule matches, adds the site to
 * the last share. */
static void decide(const struct spw_policy *policy, const struct spw_cli_sites_file *file,
                   const struct spw_cli_sites_entry *entry, struct share *shares)
{
    struct spw_callsite_facts site = entry->facts;
    const struct spw_request_facts request = {.device = entry->device, .api = entry->api};
    size_t rule = 0;

    site.process = process_of(file->json);
    site.rank = cJSON_HasObjectItem(file->json, "rank")
                    ? (int64_t)spw_cli_json_number(file->json, "rank")
                    : -1;
    for (; rule < policy->rule_count; rule++) {
        bool depends;

        if (entry->rest == 0 && entry->id != 0 &&
            matches(&policy->rules[rule], &site, &request, &depends)) {
            if (!depends) {
                break;
            }
            shares[rule].possible += entry->device_peak_bytes;
        }
    }
    shares[rule].bytes += entry->device_peak_bytes;
    shares[rule].sites += entry->rest > 0 ? entry->rest : 1;
}

static void print_share(const struct share *share, uint64_t total)
{
    printf("  %12s  %s  %6" PRIu64 "  ", spw_cli_size(share->bytes),
           spw_cli_share(share->bytes, total), share->sites);
}

static void print_device(const char *name, const struct spw_policy *policy,
                         const struct share *shares, int device)
{
    uint64_t total = 0;

    for (size_t i = 0; i <= policy->rule_count; i++) {
        total += shares[i].bytes;
    }
    if (total == 0) {
        return;
    }
    spw_cli_print(stdout, "\ndevice %d at the peak: %s, by the rules of %s\n", device,
                  spw_cli_size(total), name);
    printf("  %12s  %7s  %6s  %s\n", "bytes", "share", "sites", "rule");
    for (size_t i = 0; i < policy->rule_count; i++) {
        print_share(&shares[i], total);
        spw_cli_print(stdout, "%zu \"%s\"", i + 1, policy->rules[i].name);
        if (shares[i].possible > 0) {
            printf(", and up to %s by size or number", spw_cli_size(shares[i].possible));
        }
        putchar('\n');
    }
    print_share(&shares[policy->rule_count], total);
    puts("no rule");
}

void spw_cli_policy_print_usage(const char *name, const struct spw_policy *policy,
                                const struct spw_cli_sites_file *file)
{
    int devices = cJSON_GetArraySize(spw_cli_json_list(file->json, "devices"));

    for (int device = 0; device < devices; device++) {
        struct share shares[SPW_POLICY_RULES + 1] = {{0}};

        for (size_t i = 0; i < file->count; i++) {
            if (file->entries[i].device == device && file->entries[i].device_peak_bytes > 0) {
                decide(policy, file, &file->entries[i], shares);
            }
        }
        print_device(name, policy, shares, device);
    }
}
