#include "policy/decision.h"

#include "callsite/capture.h"
#include "callsite/facts.h"
#include "common/likely.h"
#include "common/size.h"
#include "policy/state.h"
#include "stats/path.h"
#include "stats/process.h"
#include "system/log.h"
#include "system/room.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { LINES_MOST = 100, LINE_SITE = 600, LINE_FRAMES = 3 };

/* The rules that match a call site. */
struct spw_policy_memo {
    _Atomic uint64_t candidates; /* rules that may decide: bit i for rule i */
    _Atomic uint64_t reported;   /* rules whose line was written */
    _Atomic uint64_t count;      /* allocations so far, if a rule uses the number */
    _Atomic uint64_t in_step; /* number of a step; in the lower 32 bits: allocations in that step */
    _Atomic bool known;
};

/* ---- the policy as a whole ---- */

static void find_counts(const struct spw_policy *policy)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        spw_policy_state.counts |= policy->rules[i].match.nth.count > 0;
        spw_policy_state.counts_in_steps |= policy->rules[i].match.nth_in_step.count > 0;
    }
}

/* Gives each region a number; regions beyond the last number have no effect. */
static void number_regions(const struct spw_policy *policy, const char *file)
{
    const char *names[SPW_POOL_HEAPS];

    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct spw_policy_action *action = &policy->rules[i].action;
        uint32_t at = 0;

        spw_policy_state.hosts |= action->placement == SPW_PLACEMENT_HOST ||
                                  action->host_share.set || action->limit.then == SPW_THEN_SPILL;
        if (action->region == NULL) {
            continue;
        }
        while (at < spw_policy_state.region_count && strcmp(names[at], action->region) != 0) {
            at++;
        }
        if (at == SPW_POOL_HEAPS) {
            spw_log_always("%s: more than %d regions; that of rule %s has no effect", file,
                           SPW_POOL_HEAPS, policy->rules[i].name);
            continue;
        }
        names[at] = action->region;
        spw_policy_state.region_count =
            at == spw_policy_state.region_count ? at + 1 : spw_policy_state.region_count;
        spw_policy_state.regions[i] = (uint8_t)(at + 1);
    }
}

bool spw_policy_decision_open(struct spw_policy *policy, const char *file)
{
    void *memos = mmap(NULL, (SPW_CALLSITE_MOST + (size_t)1) * sizeof(struct spw_policy_memo),
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memos == MAP_FAILED) {
        return false;
    }
    spw_policy_state.memos = memos;
    spw_policy_state.rank = spw_stats_rank();
    find_counts(policy);
    number_regions(policy, file);
    spw_stats_process_program(spw_policy_state.process, sizeof(spw_policy_state.process));
    atomic_store_explicit(&spw_policy_state.policy, policy, memory_order_release);
    return true;
}

/* ---- the sites ---- */

/* Describes a site by the names that rules match, with native frames if they are needed. */
static void describe(uint32_t number, bool native, struct spw_callsite_words *ret_words)
{
    const struct spw_callsite *site = spw_callsite_table_get(spw_callsite_known(), number);

    if (site != NULL) {
        spw_callsite_describe(site, native, ret_words);
    } else {
        ret_words->facts = (struct spw_callsite_facts){.rank = -1};
    }
    ret_words->facts.process = spw_policy_state.process;
    ret_words->facts.rank = spw_policy_state.rank;
}

static __attribute__((noinline)) uint64_t learn(const struct spw_policy *policy, uint32_t site)
{
    struct spw_policy_memo *memo = &spw_policy_state.memos[site];
    struct spw_callsite_words SPW_ROOM *words = spw_room_take(sizeof(*words));
    uint64_t candidates;
    int saved = errno;

    if (words == NULL) {
        return 0;
    }
    describe(site, /* native */ false, words);
    if (spw_policy_needs_native(policy, &words->facts)) {
        describe(site, /* native */ true, words);
    }
    candidates = spw_policy_candidates(policy, &words->facts);
    atomic_store_explicit(&memo->candidates, candidates, memory_order_relaxed);
    atomic_store_explicit(&memo->known, true, memory_order_release);
    errno = saved;
    return candidates;
}

/* Too large for a stack. */
struct description {
    struct spw_callsite_words words;
    char where[LINE_SITE];
};

/* Writes the line of a rule that logs, once for each site. */
static __attribute__((noinline)) void tell(const struct spw_ruled *device,
                                           const struct spw_policy_rule *rule, uint64_t bytes,
                                           uint32_t site)
{
    unsigned line = atomic_fetch_add(&spw_policy_state.lines, 1);
    struct description SPW_ROOM *room = NULL;
    struct spw_callsite_facts *facts;
    char size[SPW_SIZE_TEXT];
    int saved = errno;

    if (line == LINES_MOST) {
        spw_log_always("policy: no further call sites are logged");
    }
    if (line >= LINES_MOST || (room = spw_room_take(sizeof(*room))) == NULL) {
        return;
    }
    facts = &room->words.facts;
    describe(site, /* native */ false, &room->words);
    if (facts->python_count == 0) {
        describe(site, /* native */ true, &room->words);
    }
    facts->python_count = facts->python_count < LINE_FRAMES ? facts->python_count : LINE_FRAMES;
    facts->native_count = facts->native_count < LINE_FRAMES ? facts->native_count : LINE_FRAMES;
    (void)spw_callsite_print(facts, NULL, room->where, sizeof(room->where));
    spw_log_always("policy: rule %s matches on device %d: first %s at %s", rule->name,
                   device->ordinal, spw_size_text(bytes, size), room->where);
    errno = saved;
}

/* ---- deciding ---- */

static uint64_t most_of(const struct spw_policy_amount *amount, uint64_t total)
{
    return amount->percent ? total / 1000 * amount->permille : amount->bytes;
}

static void placement_of(const struct spw_ruled *device, const struct spw_policy *policy,
                         const struct spw_policy_rule *rule,
                         struct spw_pool_placement *ret_placement)
{
    const struct spw_policy_action *action = &rule->action;

    *ret_placement = (struct spw_pool_placement){
        .limit_bytes =
            action->limit.max.set ? most_of(&action->limit.max, device->total_bytes) : UINT64_MAX,
        .priority = (int32_t)action->priority.value,
        .host_permille = action->host_share.set ? action->host_share.permille : 0,
        .lazy = action->commit == SPW_COMMIT_LAZY,
        .account = (uint8_t)(rule - policy->rules + 1),
        .heap = spw_policy_state.regions[rule - policy->rules],
        .on_host = action->placement == SPW_PLACEMENT_HOST,
        .on_device = action->placement == SPW_PLACEMENT_DEVICE,
        .fixed = action->placement == SPW_PLACEMENT_DEVICE || action->movable == SPW_SWITCH_OFF,
    };
}

/* Counts an allocation of a site in the present step. Returns the allocation's number in the step;
 * 0 before the first step, and when the number exceeds 32 bits. */
static uint64_t count_in_step(struct spw_policy_memo *memo)
{
    uint64_t step = atomic_load_explicit(&spw_policy_state.step, memory_order_relaxed);
    uint64_t seen = atomic_load_explicit(&memo->in_step, memory_order_relaxed), next;

    do {
        next = seen >> 32 >= step ? seen + 1 : step << 32 | 1;
        if (step == 0 || (uint32_t)next == 0) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&memo->in_step, &seen, next,
                                                    memory_order_relaxed, memory_order_relaxed));
    return (uint32_t)next;
}

void spw_policy_decision_mark_step(void)
{
    atomic_fetch_add_explicit(&spw_policy_state.step, 1, memory_order_relaxed);
}

bool spw_policy_decision_make(const struct spw_ruled *device, uint64_t bytes, uint32_t site,
                              const char *api, struct spw_decision *ret_decision)
{
    const struct spw_policy *policy =
        atomic_load_explicit(&spw_policy_state.policy, memory_order_acquire);
    struct spw_policy_memo *memo = &spw_policy_state.memos[site <= SPW_CALLSITE_MOST ? site : 0];
    struct spw_request_facts request = {.size = bytes, .device = device->ordinal, .api = api};
    uint64_t candidates = atomic_load_explicit(&memo->known, memory_order_acquire)
                              ? atomic_load_explicit(&memo->candidates, memory_order_relaxed)
                              : learn(policy, site);
    const struct spw_policy_rule *rule;
    int index;

    if (candidates == 0) {
        return false;
    }
    if (spw_policy_state.counts) {
        request.nth = atomic_fetch_add_explicit(&memo->count, 1, memory_order_relaxed) + 1;
    }
    if (spw_policy_state.counts_in_steps) {
        request.nth_in_step = count_in_step(memo);
    }
    index = spw_policy_decide(policy, candidates, &request);
    if (index == SPW_POLICY_NO_RULE) {
        return false;
    }
    rule = &policy->rules[index];
    ret_decision->rule = rule;
    placement_of(device, policy, rule, &ret_decision->placement);
    if (SPW_UNLIKELY(rule->action.log == SPW_SWITCH_ON) &&
        (atomic_load(&memo->reported) >> index & 1) == 0 &&
        (atomic_fetch_or(&memo->reported, UINT64_C(1) << index) >> index & 1) == 0) {
        tell(device, rule, bytes, site);
    }
    return true;
}

/* ---- reports ---- */

static uint64_t bit_of(const struct spw_policy_rule *rule)
{
    return UINT64_C(1) << (rule - atomic_load(&spw_policy_state.policy)->rules);
}

unsigned spw_policy_decision_find(const char *name)
{
    const struct spw_policy *policy = atomic_load(&spw_policy_state.policy);

    for (size_t i = 0; policy != NULL && i < policy->rule_count; i++) {
        if (strcmp(policy->rules[i].name, name) == 0) {
            return (unsigned)i + 1;
        }
    }
    return 0;
}

unsigned spw_policy_decision_number(const struct spw_policy_rule *rule)
{
    return (unsigned)(rule - atomic_load(&spw_policy_state.policy)->rules) + 1;
}

struct spw_account *spw_policy_decision_tally(const struct spw_ruled *device,
                                              const struct spw_policy_rule *rule)
{
    return &device->tallies[rule - atomic_load(&spw_policy_state.policy)->rules];
}

void spw_policy_decision_unmet(const struct spw_ruled *device, const struct spw_policy_rule *rule,
                               const char *why)
{
    spw_counter_add(&spw_policy_decision_tally(device, rule)->unmet, 1);
    if ((atomic_fetch_or(&spw_policy_state.unmet_reported, bit_of(rule)) & bit_of(rule)) == 0) {
        spw_log_always(
            "policy: rule %s cannot be applied on device %d: %s; its blocks are placed without it",
            rule->name, device->ordinal, why);
    }
}

static void tell_beyond(const struct spw_ruled *device, const struct spw_decision *decision,
                        uint64_t bytes)
{
    const struct spw_policy_rule *rule = decision->rule;
    bool fails = rule->action.limit.then == SPW_THEN_FAIL;
    char most[SPW_SIZE_TEXT], asked[SPW_SIZE_TEXT], held[SPW_SIZE_TEXT];

    if (fails) {
        spw_counter_add(&spw_policy_decision_tally(device, rule)->refused, 1);
    } else if ((atomic_fetch_or(&spw_policy_state.beyond_reported, bit_of(rule)) & bit_of(rule)) !=
               0) {
        return;
    }
    spw_log_always(
        "policy: rule %s exceeds its limit of %s on device %d: it holds %s, and %s more %s",
        rule->name, spw_size_text(decision->placement.limit_bytes, most), device->ordinal,
        spw_size_text(spw_counter_get(&spw_policy_decision_tally(device, rule)->live), held),
        spw_size_text(bytes, asked), fails ? "are refused" : "are requested");
}

bool spw_policy_decision_beyond(const struct spw_ruled *device, struct spw_decision *decision,
                                uint64_t bytes)
{
    int then = decision->rule->action.limit.then;

    if (then != SPW_THEN_SPILL) {
        tell_beyond(device, decision, bytes);
    }
    if (then == SPW_THEN_FAIL) {
        return false;
    }
    decision->placement.limit_bytes = UINT64_MAX;
    decision->placement.on_host = then == SPW_THEN_SPILL;
    decision->placement.on_device = decision->placement.on_device && then != SPW_THEN_SPILL;
    return true;
}
