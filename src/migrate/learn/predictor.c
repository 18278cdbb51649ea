#include "migrate/learn/predictor.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "migrate/tuning.h"

bool spw_migrate_predictor_init(struct spw_predictor *predictor)
{
    memset(predictor, 0, sizeof(*predictor));
    predictor->events = calloc(SPW_PREDICTOR_EVENTS, sizeof(*predictor->events));
    predictor->ngrams = calloc((size_t)1 << SPW_TUNE_NGRAM_BITS, sizeof(*predictor->ngrams));
    predictor->blocks = calloc(SPW_PREDICTOR_BLOCKS, sizeof(*predictor->blocks));
    predictor->unused = calloc(SPW_PREDICTOR_BLOCKS, sizeof(*predictor->unused));
    predictor->block_count = 1;
    if (predictor->events == NULL || predictor->ngrams == NULL || predictor->blocks == NULL ||
        predictor->unused == NULL) {
        spw_migrate_predictor_fini(predictor);
        return false;
    }
    return true;
}

void spw_migrate_predictor_fini(struct spw_predictor *predictor)
{
    free(predictor->events);
    free(predictor->ngrams);
    free(predictor->blocks);
    free(predictor->unused);
    memset(predictor, 0, sizeof(*predictor));
}

static struct spw_predictor_event *event_at(const struct spw_predictor *predictor, uint64_t number)
{
    return &predictor->events[number % SPW_PREDICTOR_EVENTS];
}

/* True while the event is in the ring. One slot is spared for the next event. */
static bool is_kept(const struct spw_predictor *predictor, uint64_t number)
{
    return predictor->count - number < SPW_PREDICTOR_EVENTS - 1;
}

/* ---- following ---- */

/* The period that the cursor follows: events from the cursor to now. 0: none. */
static uint64_t repeat_distance(const struct spw_predictor *predictor)
{
    return predictor->following ? predictor->count - predictor->cursor : 0;
}

/* Makes `block` the successor of the block `before` of the previous repetition. */
static void link_blocks(struct spw_predictor *predictor, uint32_t before, uint32_t block)
{
    if (before != block) {
        predictor->blocks[before].successor = block;
        predictor->blocks[block].predecessor = before;
    }
}

static uint32_t successor_of(const struct spw_predictor *predictor, uint32_t block)
{
    uint32_t successor = predictor->blocks[block].successor;

    return successor != 0 && predictor->blocks[successor].predecessor == block ? successor : 0;
}

/* Number of events before `number`, at most `most`, that match the newest events one by one. */
static uint64_t match_length(const struct spw_predictor *predictor, uint64_t number, uint64_t most)
{
    uint64_t matched = 0;

    while (matched < most && number > matched && is_kept(predictor, number - matched - 1) &&
           event_at(predictor, number - matched - 1)->token ==
               event_at(predictor, predictor->count - matched - 1)->token) {
        matched++;
    }
    return matched;
}

/* True when two events of one token use different blocks although the older block is still live.
 * Two training steps would use the same block (a weight), two layers do not. */
static bool uses_other_block(const struct spw_predictor *predictor,
                             const struct spw_predictor_event *then,
                             const struct spw_predictor_event *now)
{
    return then->block != now->block && predictor->blocks[then->block].live;
}

/* Number of the newest events that match the events one step earlier and use the same blocks, with
 * a few exceptions. */
static uint64_t count_repeated(const struct spw_predictor *predictor, uint64_t step)
{
    uint64_t others = 0;

    for (uint64_t i = 1; i <= step; i++) {
        uint64_t number = predictor->count - i;
        const struct spw_predictor_event *now = event_at(predictor, number), *then;

        if (number < step || !is_kept(predictor, number - step)) {
            return i - 1;
        }
        then = event_at(predictor, number - step);
        others += uses_other_block(predictor, then, now);
        if (then->token != now->token || others > step / SPW_TUNE_OTHER_BLOCKS_SHARE) {
            return i - 1;
        }
    }
    return step;
}

/* Bytes of the live blocks that the newest events name, each block counted once. */
static uint64_t sum_bytes(struct spw_predictor *predictor, uint64_t events)
{
    uint64_t bytes = 0;

    predictor->sum++;
    for (uint64_t i = 1; i <= events; i++) {
        struct spw_predictor_block *b =
            &predictor->blocks[event_at(predictor, predictor->count - i)->block];

        bytes += b->live && b->sum_pass != predictor->sum ? b->bytes : 0;
        b->sum_pass = predictor->sum;
    }
    return bytes;
}

/* An earlier point of the history that resembles the present. */
struct candidate {
    uint64_t number;  /* of the event that followed then */
    uint64_t matched; /* length of the match with the present */
};

/* Goes to the next older candidate of the same n-gram. False when there is none. */
static bool previous_candidate(const struct spw_predictor *predictor, struct candidate *candidate)
{
    uint32_t before = event_at(predictor, candidate->number - 1)->back;

    if (before == 0 || before >= candidate->number ||
        !is_kept(predictor, candidate->number - 1 - before)) {
        return false;
    }
    candidate->number -= before;
    return true;
}

/* The newest candidate. matched 0: none. */
static struct candidate find_newest_match(const struct spw_predictor *predictor)
{
    struct candidate candidate = {.number = predictor->count};

    if (previous_candidate(predictor, &candidate)) {
        candidate.matched = match_length(predictor, candidate.number, SPW_TUNE_MAX_MATCH);
    }
    return candidate;
}

/* Sets the cursor to `number`. The `matched` events before it correspond to the newest events, so
 * their blocks are linked. */
static void follow_from(struct spw_predictor *predictor, uint64_t number, uint64_t matched)
{
    predictor->cursor = number;
    predictor->following = true;
    predictor->mispredict_score = 0;
    for (uint64_t i = 1; i <= matched; i++) {
        const struct spw_predictor_event *then = event_at(predictor, predictor->cursor - i);

        if (then->kind == SPW_PREDICTOR_ALLOC) {
            link_blocks(predictor, then->block, event_at(predictor, predictor->count - i)->block);
        }
    }
}

/* ---- steps that the program marks ---- */

/* The first event number of the marked step `back` steps ago; 0 is the present step. */
static uint64_t mark_at(const struct spw_predictor *predictor, uint64_t back)
{
    return predictor->marks[(predictor->mark_count - 1 - back) % SPW_PREDICTOR_MARKS];
}

/* Number of earlier marked steps that can be followed. It is 0 when the present step is far longer
 * than the last: the program has stopped marking, and steps are detected again. */
static uint64_t marked_steps(const struct spw_predictor *predictor)
{
    uint64_t most =
        predictor->mark_count < SPW_PREDICTOR_MARKS ? predictor->mark_count : SPW_PREDICTOR_MARKS;

    if (most < 2 ||
        predictor->count - mark_at(predictor, 0) >
            SPW_TUNE_MARK_STALE_STEPS * (mark_at(predictor, 0) - mark_at(predictor, 1))) {
        return 0;
    }
    return most - 1;
}

/* The length of the marked step that contains the cursor; 0: none does. If the cursor is already in
 * the present step, which is not complete, it is the length of the last step. */
static uint64_t marked_period(const struct spw_predictor *predictor)
{
    for (uint64_t back = 1; back <= marked_steps(predictor); back++) {
        if (predictor->cursor >= mark_at(predictor, back)) {
            return mark_at(predictor, back - 1) - mark_at(predictor, back);
        }
    }
    return 0;
}

/* The earlier marked step that was equal up to the same place. Of several, it is the step with the
 * longest match of the history before it. matched 0: none. */
static struct candidate find_marked_step(const struct spw_predictor *predictor)
{
    uint64_t offset = predictor->count - mark_at(predictor, 0), compared = 0;
    struct candidate best = {0};

    for (uint64_t back = 1; back <= marked_steps(predictor) && compared < SPW_TUNE_MAX_COMPARED;
         back++) {
        struct candidate candidate = {.number = mark_at(predictor, back) + offset};

        if (candidate.number >= mark_at(predictor, back - 1) ||
            !is_kept(predictor, candidate.number)) {
            continue;
        }
        candidate.matched = match_length(predictor, candidate.number, SPW_TUNE_MAX_MATCH);
        compared += candidate.matched;
        if (candidate.matched >= offset && candidate.matched > best.matched) {
            best = candidate;
        }
    }
    return best;
}

/* Goes to the step with the longest match of the history before its mark, or to the last step. */
void spw_migrate_predictor_mark_step(struct spw_predictor *predictor)
{
    struct candidate candidate;

    if (predictor->mark_count > 0 && mark_at(predictor, 0) == predictor->count) {
        return;
    }
    predictor->marks[predictor->mark_count++ % SPW_PREDICTOR_MARKS] = predictor->count;
    candidate = find_marked_step(predictor);
    if (candidate.matched == 0 && marked_steps(predictor) > 0 &&
        is_kept(predictor, mark_at(predictor, 1))) {
        candidate.number = mark_at(predictor, 1);
    }
    if (candidate.number > 0 || candidate.matched > 0) {
        follow_from(predictor, candidate.number, candidate.matched);
        predictor->confirmed = true;
    }
}

/* ---- steps that are detected ---- */

/* Finds the length of the last step; 0: none. A step is a repetition within the period. Its two
 * newest instances match, and use the same blocks and most of the live memory. The work is bounded
 * by a few periods, because every period repeats it. */
static uint64_t find_step(struct spw_predictor *predictor)
{
    struct candidate candidate = {.number = predictor->count};
    uint64_t most = SPW_TUNE_STEP_SEARCH_PERIODS * spw_migrate_predictor_period(predictor),
             compared = 0;

    most = most < SPW_TUNE_MAX_COMPARED ? most : SPW_TUNE_MAX_COMPARED;
    while (compared < most && previous_candidate(predictor, &candidate)) {
        uint64_t step = predictor->count - candidate.number, repeated;

        if (step > repeat_distance(predictor)) {
            return 0;
        }
        repeated = step >= SPW_TUNE_MIN_MATCH ? count_repeated(predictor, step) : 0;
        compared += SPW_TUNE_NGRAM_EVENTS + repeated;
        if (repeated > 0 && repeated >= step - step / SPW_TUNE_STEP_MISSING_SHARE &&
            sum_bytes(predictor, step) >= predictor->live_bytes / 2) {
            return step;
        }
    }
    return 0;
}

/* True when the events of the whole period have occurred twice in a row. The result stays true
 * until the next resync. */
static bool is_confirmed(struct spw_predictor *predictor)
{
    uint64_t distance = repeat_distance(predictor);

    predictor->confirmed =
        predictor->confirmed || match_length(predictor, predictor->cursor, distance) == distance;
    return predictor->confirmed;
}

/* Measures the step, and predicts from the last step while the period has not occurred twice. An
 * example is the first step after an evaluation: its longest match lies before the evaluation. */
static void measure_step(struct spw_predictor *predictor)
{
    uint64_t step = marked_steps(predictor) > 0 ? 0 : find_step(predictor), period;

    if (step > 0 && step <= spw_migrate_predictor_period(predictor)) {
        predictor->step = step;
        predictor->step_seen = predictor->count;
    }
    if (step > 0 && step < repeat_distance(predictor) && !is_confirmed(predictor)) {
        follow_from(predictor, predictor->count - step,
                    match_length(predictor, predictor->count - step, step));
    }
    period = spw_migrate_predictor_period(predictor) / SPW_TUNE_STEP_MEASURE_SHARE;
    predictor->measure_at =
        predictor->count + (period > SPW_TUNE_RESYNC_INTERVAL ? period : SPW_TUNE_RESYNC_INTERVAL);
}

/* Looks for a new place for the cursor after a misprediction. Without one the cursor stays. */
static void resync(struct spw_predictor *predictor)
{
    struct candidate candidate = {0};

    predictor->search_wait = SPW_TUNE_RESYNC_INTERVAL;
    predictor->confirmed = false;
    if (marked_steps(predictor) > 0) {
        candidate = find_marked_step(predictor);
        if (candidate.matched > 0) {
            follow_from(predictor, candidate.number, candidate.matched);
            return;
        }
    }
    candidate = find_newest_match(predictor);
    if (candidate.matched >= SPW_TUNE_MIN_MATCH &&
        (marked_steps(predictor) == 0 || candidate.number <= mark_at(predictor, 0))) {
        follow_from(predictor, candidate.number, candidate.matched);
        measure_step(predictor);
    }
}

/* True when an event has the role of a past one: it has the same token, or, in a marked step, names
 * the successor of the past event's block. There an allocation of another size by the same call
 * site also matches the event at the cursor (`is_next`): dynamic shapes change only sizes. */
static bool is_same_role(const struct spw_predictor *predictor,
                         const struct spw_predictor_event *then,
                         const struct spw_predictor_event *now, bool is_next)
{
    if (then->token == now->token) {
        return true;
    }
    if (then->kind != now->kind || marked_period(predictor) == 0) {
        return false;
    }
    return now->kind == SPW_PREDICTOR_ALLOC ? is_next && predictor->blocks[then->block].site ==
                                                             predictor->blocks[now->block].site
                                            : successor_of(predictor, then->block) == now->block;
}

/* Compares an event with the event at the cursor, and advances the cursor, over a few missing
 * events if needed. False for a misprediction. */
static bool follow(struct spw_predictor *predictor, const struct spw_predictor_event *event)
{
    for (uint64_t skipped = 0;
         skipped <= SPW_TUNE_MAX_SKIPPED_EVENTS && predictor->cursor + skipped < predictor->count;
         skipped++) {
        const struct spw_predictor_event *then = event_at(predictor, predictor->cursor + skipped);

        if (is_same_role(predictor, then, event, /* is_next */ skipped == 0)) {
            if (event->kind == SPW_PREDICTOR_ALLOC) {
                link_blocks(predictor, then->block, event->block);
            } else if (then->block == event->block) {
                predictor->blocks[event->block].successor = 0; /* it has kept its role */
            }
            predictor->cursor += skipped + 1;
            predictor->mispredict_score += skipped > 0 ? 2 : 0;
            predictor->mispredict_score -= skipped == 0 && predictor->mispredict_score > 0 ? 1 : 0;
            predictor->hits++;
            return skipped == 0;
        }
    }
    predictor->mispredict_score += 2;
    predictor->misses++;
    return false;
}

/* ---- recording ---- */

/* Frees a block number that the history no longer names. */
static void recycle(struct spw_predictor *predictor, uint32_t block)
{
    memset(&predictor->blocks[block], 0, sizeof(predictor->blocks[block]));
    predictor->unused[predictor->unused_count++] = block;
}

/* The entry of the n-gram that ends with the newest event. */
static uint64_t *ngram_slot(struct spw_predictor *predictor)
{
    uint64_t hash = 0;

    for (uint64_t i = 1; i <= SPW_TUNE_NGRAM_EVENTS && i <= predictor->count; i++) {
        hash = spw_hash_word(hash ^ event_at(predictor, predictor->count - i)->token);
        hash ^= hash >> 31;
    }
    return &predictor->ngrams[spw_hash_word(hash) >> (64 - SPW_TUNE_NGRAM_BITS)];
}

/* An event of the expected role but another size is followed. */
static void append_event(struct spw_predictor *predictor, enum spw_predictor_kind kind,
                         uint32_t block)
{
    struct spw_predictor_block *b = &predictor->blocks[block];
    struct spw_predictor_event event = {
        .token = b->token * 4 + (uint32_t)kind, .block = block, .kind = (uint8_t)kind};
    struct spw_predictor_event *slot = event_at(predictor, predictor->count);
    bool predicted = true;
    uint64_t *newest;

    if (predictor->count >= SPW_PREDICTOR_EVENTS && slot->kind == SPW_PREDICTOR_FREE) {
        recycle(predictor, slot->block);
    }
    if (predictor->following) {
        predicted = follow(predictor, &event);
        /* The program vouches for a marked step, so it is followed despite many differences: with
         * dynamic shapes, for example, only the weights keep their sizes. */
        predictor->following = (predictor->mispredict_score <= SPW_TUNE_MAX_MISPREDICT_SCORE ||
                                marked_period(predictor) > 0) &&
                               is_kept(predictor, predictor->cursor);
    }
    b->last = (int64_t)predictor->count;
    *slot = event;
    predictor->count++;
    newest = ngram_slot(predictor);
    if (*newest != 0 && is_kept(predictor, *newest - 1)) {
        slot->back = (uint32_t)(predictor->count - *newest);
    }
    *newest = predictor->count;
    predictor->search_wait -= predictor->search_wait > 0 ? 1 : 0;
    if (!predicted || (!predictor->following && predictor->search_wait == 0)) {
        resync(predictor);
    } else if (predictor->following && predictor->count >= predictor->measure_at) {
        measure_step(predictor);
    }
}

uint32_t spw_migrate_predictor_add_block(struct spw_predictor *predictor, uint64_t bytes,
                                         uint32_t site, uint64_t age)
{
    uint64_t hash = spw_hash_word(bytes + 1) ^ site;
    uint32_t number;

    if (predictor->unused_count > 0) {
        number = predictor->unused[--predictor->unused_count];
    } else if (predictor->block_count < SPW_PREDICTOR_BLOCKS) {
        number = predictor->block_count++;
    } else {
        return 0;
    }
    hash = spw_hash_word(hash ^ hash >> 29);
    predictor->blocks[number] =
        (struct spw_predictor_block){.bytes = bytes,
                                     .last = (int64_t)(predictor->count - age),
                                     .token = (uint32_t)(hash >> 32),
                                     .site = site,
                                     .live = true};
    predictor->live_bytes += bytes;
    return number;
}

uint32_t spw_migrate_predictor_alloc(struct spw_predictor *predictor, uint64_t bytes, uint32_t site)
{
    uint32_t block = spw_migrate_predictor_add_block(predictor, bytes, site, 0);

    if (block != 0) {
        append_event(predictor, SPW_PREDICTOR_ALLOC, block);
    }
    return block;
}

uint32_t spw_migrate_predictor_add_untracked(struct spw_predictor *predictor, uint64_t bytes,
                                             uint32_t site)
{
    uint32_t block = spw_migrate_predictor_add_block(predictor, bytes, site, 0);

    if (block != 0) {
        predictor->blocks[block].untracked = true;
        predictor->live_bytes -= bytes;
    }
    return block;
}

/* The history does not name the block, so its number is free at once. */
void spw_migrate_predictor_end_untracked(struct spw_predictor *predictor, uint32_t block)
{
    predictor->blocks[block].live = false;
    predictor->unused[predictor->unused_count++] = block;
}

void spw_migrate_predictor_use(struct spw_predictor *predictor, uint32_t block)
{
    const struct spw_predictor_event *last = event_at(predictor, predictor->count - 1);

    if (predictor->count == 0 || last->block != block || last->kind != SPW_PREDICTOR_USE) {
        append_event(predictor, SPW_PREDICTOR_USE, block);
    } else {
        predictor->blocks[block].last = (int64_t)predictor->count - 1;
    }
}

void spw_migrate_predictor_free(struct spw_predictor *predictor, uint32_t block)
{
    predictor->blocks[block].live = false;
    predictor->live_bytes -= predictor->blocks[block].bytes;
    append_event(predictor, SPW_PREDICTOR_FREE, block);
}

/* ---- forecasts ---- */

/* A step that was last seen before the beginning of the period does not count. */
uint64_t spw_migrate_predictor_period(const struct spw_predictor *predictor)
{
    uint64_t distance = repeat_distance(predictor);
    uint64_t marked = distance > 0 ? marked_period(predictor) : 0;

    if (marked > 0) {
        return marked;
    }
    return predictor->step > 0 && predictor->step < distance &&
                   predictor->count - predictor->step_seen < distance
               ? predictor->step
               : distance;
}

/* The live block that has the role of `block` in the next repetition; 0 before its allocation. */
static uint32_t live_block_for(const struct spw_predictor *predictor, uint32_t block)
{
    uint32_t successor = successor_of(predictor, block);
    uint32_t now = successor != 0 ? successor : block;

    return predictor->blocks[block].realloc_pass != predictor->forecast &&
                   predictor->blocks[now].live
               ? now
               : 0;
}

/* Stores the first predicted use and free of each block. */
static void record_prediction(struct spw_predictor *predictor,
                              const struct spw_prediction *prediction)
{
    struct spw_predictor_block *b = &predictor->blocks[prediction->block];

    if (prediction->kind == SPW_PREDICTOR_USE && b->next_use_pass != predictor->forecast) {
        b->next_use_pass = predictor->forecast;
        b->next_use = prediction->distance;
    }
    if (prediction->kind == SPW_PREDICTOR_FREE && b->next_free_pass != predictor->forecast) {
        b->next_free_pass = predictor->forecast;
        b->next_free = prediction->distance;
    }
}

void spw_migrate_predictor_forecast(struct spw_predictor *predictor,
                                    void (*expect)(void *cookie,
                                                   const struct spw_prediction *prediction),
                                    void *cookie)
{
    uint64_t distance = repeat_distance(predictor),
             reach = SPW_TUNE_FORECAST_PERIODS * spw_migrate_predictor_period(predictor);
    uint64_t end = predictor->cursor + (reach < distance ? reach : distance);

    predictor->forecast++;
    for (uint64_t number = predictor->cursor; number < end; number++) {
        const struct spw_predictor_event *event = event_at(predictor, number);
        struct spw_prediction prediction = {.kind = event->kind,
                                            .distance = (uint32_t)(number - predictor->cursor),
                                            .bytes = predictor->blocks[event->block].bytes};

        if (event->kind == SPW_PREDICTOR_ALLOC) {
            predictor->blocks[event->block].realloc_pass = predictor->forecast;
        }
        prediction.block = live_block_for(predictor, event->block);
        if (prediction.block != 0) {
            record_prediction(predictor, &prediction);
        }
        if (event->kind != SPW_PREDICTOR_USE && expect != NULL) {
            expect(cookie, &prediction);
        }
    }
}
