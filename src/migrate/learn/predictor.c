#include "migrate/learn/predictor.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/minmax.h"
#include "migrate/tuning.h"

/* The hash of an n-gram is a polynomial of its tokens in this odd number. */
#define NGRAM_FACTOR UINT64_C(0x9e3779b97f4a7c15)

bool spw_migrate_predictor_init(struct spw_predictor *predictor)
{
    memset(predictor, 0, sizeof(*predictor));
    predictor->events = calloc(SPW_PREDICTOR_EVENTS, sizeof(*predictor->events));
    predictor->ngrams = calloc(SPW_PREDICTOR_NGRAMS, sizeof(*predictor->ngrams));
    predictor->blocks = calloc(SPW_PREDICTOR_BLOCKS, sizeof(*predictor->blocks));
    predictor->unused = calloc(SPW_PREDICTOR_BLOCKS, sizeof(*predictor->unused));
    predictor->block_count = 1;
    predictor->ngram_oldest = 1;
    for (int i = 0; i < SPW_TUNE_MATCH_EVENTS; i++) {
        predictor->ngram_oldest *= NGRAM_FACTOR;
    }
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

/* The newest earlier place, before `number`, at which the n-gram before `number` has ended; 0:
 * none. It is the number of the event that followed then. */
static uint64_t previous_place(const struct spw_predictor *predictor, uint64_t number)
{
    uint32_t back = event_at(predictor, number - 1)->back;

    return back != 0 && back < number && is_kept(predictor, number - 1 - back) ? number - back : 0;
}

/* The newest earlier place at which the newest events have come in the same order; 0: none. */
static uint64_t find_newest_place(const struct spw_predictor *predictor)
{
    uint64_t place = previous_place(predictor, predictor->count);

    return place != 0 &&
                   match_length(predictor, place, SPW_TUNE_MATCH_EVENTS) == SPW_TUNE_MATCH_EVENTS
               ? place
               : 0;
}

/* Sets the cursor to a place, and links the blocks of the equal events before it. */
static void follow_from(struct spw_predictor *predictor, uint64_t place)
{
    uint64_t matched = match_length(predictor, place, predictor->count - place);

    predictor->cursor = place;
    predictor->following = true;
    predictor->mispredict_score = 0;
    for (uint64_t i = 1; i <= matched; i++) {
        const struct spw_predictor_event *then = event_at(predictor, place - i);

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

/* Number of earlier marked steps that can be followed. It is 0 when the present step is longer than
 * all of them together: the program has stopped marking, and steps are detected again. */
static uint64_t marked_steps(const struct spw_predictor *predictor)
{
    uint64_t most =
        predictor->mark_count < SPW_PREDICTOR_MARKS ? predictor->mark_count : SPW_PREDICTOR_MARKS;

    return most > 1 && predictor->count - mark_at(predictor, 0) <=
                           mark_at(predictor, 0) - mark_at(predictor, most - 1)
               ? most - 1
               : 0;
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

/* The place in an earlier marked step that was equal up to the same place; 0: none. Of several, it
 * is the newest; just behind a mark, it is the one with the longest match of the history before it.
 */
static uint64_t find_in_marked_step(const struct spw_predictor *predictor)
{
    uint64_t offset = predictor->count - mark_at(predictor, 0), best = 0, place = 0;
    uint64_t most = offset > SPW_TUNE_MATCH_EVENTS ? offset : SPW_TUNE_MATCH_EVENTS;

    for (uint64_t back = 1; back <= marked_steps(predictor) && best < most; back++) {
        uint64_t number = mark_at(predictor, back) + offset, matched;

        if (number >= mark_at(predictor, back - 1) || !is_kept(predictor, number)) {
            continue;
        }
        matched = match_length(predictor, number, most);
        if (matched >= offset && matched > best) {
            best = matched;
            place = number;
        }
    }
    return place;
}

/* Goes to the step with the longest match of the history before its mark, or to the last step. */
void spw_migrate_predictor_mark_step(struct spw_predictor *predictor)
{
    uint64_t place;

    if (predictor->mark_count > 0 && mark_at(predictor, 0) == predictor->count) {
        return;
    }
    predictor->marks[predictor->mark_count++ % SPW_PREDICTOR_MARKS] = predictor->count;
    if (marked_steps(predictor) > 0 && is_kept(predictor, mark_at(predictor, 1))) {
        place = find_in_marked_step(predictor);
        follow_from(predictor, place != 0 ? place : mark_at(predictor, 1));
        predictor->confirmed = true;
    }
}

/* ---- steps that are detected ---- */

/* Number of newest events that name half of the live memory, or `most` if fewer do not. */
static uint64_t count_covering(const struct spw_predictor *predictor, uint64_t most)
{
    uint64_t bytes = 0, events = 0;

    while (bytes < predictor->live_bytes / 2 && events < most) {
        uint64_t number = predictor->count - ++events;
        const struct spw_predictor_block *b =
            &predictor->blocks[event_at(predictor, number)->block];

        bytes += b->live && b->last == (int64_t)number ? b->bytes : 0;
    }
    return events;
}

/* Finds out if the events of the whole period have occurred twice in a row. This stays true until
 * the next resync. Returns the number of events that were compared. */
static uint64_t confirm(struct spw_predictor *predictor)
{
    uint64_t distance = repeat_distance(predictor), length;

    if (predictor->confirmed) {
        return 0;
    }
    length = match_length(predictor, predictor->cursor, distance);
    predictor->confirmed = length == distance;
    return length;
}

/* True when the newest `step` events match the events one step earlier and use the same blocks. An
 * older block that is still live means another layer: two steps would use the same. */
static bool is_repeated(const struct spw_predictor *predictor, uint64_t step)
{
    uint64_t repeated = 0;
    const struct spw_predictor_event *now, *then;

    do {
        now = event_at(predictor, predictor->count - ++repeated);
        then = event_at(predictor, predictor->count - step - repeated);
    } while (repeated < step && then->token == now->token &&
             (then->block == now->block || !predictor->blocks[then->block].live));
    return repeated == step;
}

/* The length of the last step. It is the distance of the cursor unless a shorter repetition uses
 * the same blocks and half of the live memory. */
static uint64_t find_step(const struct spw_predictor *predictor, uint64_t covering)
{
    uint32_t block = event_at(predictor, predictor->count - 1)->block;
    uint64_t distance = repeat_distance(predictor), place = predictor->count, step;

    do {
        place = previous_place(predictor, place);
        step = predictor->count - place;
    } while (place != 0 && step < distance &&
             (step < covering || event_at(predictor, place - 1)->block != block));
    return step < distance && 2 * step <= predictor->count &&
                   is_kept(predictor, predictor->count - 2 * step) && is_repeated(predictor, step)
               ? step
               : distance;
}

/* So many events may be compared for each event of the program. */
enum { COMPARED_SHARE = 16 };

/* Measures the step, and follows the last step while the period has not occurred twice. An example
 * is the first step after an evaluation: its newest place lies before the evaluation. Only the use
 * of a block that is older than the period tells layers from steps. */
static void measure_step(struct spw_predictor *predictor)
{
    const struct spw_predictor_event *now = event_at(predictor, predictor->count - 1);
    uint64_t distance = repeat_distance(predictor), covering, step, compared;

    if (now->kind != SPW_PREDICTOR_USE ||
        event_at(predictor, predictor->cursor - 1)->block != now->block) {
        return;
    }
    covering = count_covering(predictor, distance);
    step = find_step(predictor, covering);
    if (step <= predictor->step || predictor->count - predictor->step_seen >= distance) {
        predictor->step = step;
        predictor->step_seen = step < distance ? predictor->count : predictor->step_seen;
    }
    /* This took the time of the covering and the compared events, so it is due again after as many
     * of the former, and after a share of the latter. */
    compared = confirm(predictor) + (step < distance ? step : 0);
    predictor->measure_at = predictor->count + spw_max(covering, compared / COMPARED_SHARE);
    if (!predictor->confirmed && step < distance) {
        follow_from(predictor, predictor->count - step);
    }
}

/* Looks for a new place for the cursor after a misprediction. Without one the cursor stays. */
static void resync(struct spw_predictor *predictor)
{
    uint64_t place = marked_steps(predictor) > 0 ? find_in_marked_step(predictor) : 0;

    predictor->confirmed = false;
    predictor->measure_at = predictor->count;
    if (place == 0) {
        place = find_newest_place(predictor);
        if (marked_steps(predictor) > 0 && place > mark_at(predictor, 0)) {
            place = 0;
        }
    }
    if (place != 0) {
        follow_from(predictor, place);
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
         skipped <= SPW_TUNE_MATCH_EVENTS / 2 && predictor->cursor + skipped < predictor->count;
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

/* The entry of the n-gram that ends with the newest event, whose hash takes the newest event in and
 * leaves the oldest one out. */
static uint64_t *ngram_slot(struct spw_predictor *predictor)
{
    uint64_t newest = predictor->count - 1;

    predictor->ngram = predictor->ngram * NGRAM_FACTOR + event_at(predictor, newest)->token;
    if (newest >= SPW_TUNE_MATCH_EVENTS) {
        predictor->ngram -=
            predictor->ngram_oldest * event_at(predictor, newest - SPW_TUNE_MATCH_EVENTS)->token;
    }
    return &predictor->ngrams[(spw_hash_word(predictor->ngram) >> 32) % SPW_PREDICTOR_NGRAMS];
}

/* When no place was followed for a whole step that is as far away as a step, but a layer or
 * nothing, the repetition has changed, and so has its step. */
static void watch_step(struct spw_predictor *predictor)
{
    uint64_t distance = repeat_distance(predictor);

    if (distance > 0 && distance >= predictor->step) {
        predictor->last_followed = predictor->count;
    } else if (predictor->count - predictor->last_followed > predictor->step) {
        predictor->step = distance;
        predictor->step_seen = 0;
    }
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
        predictor->following = (predictor->mispredict_score <= SPW_TUNE_MATCH_EVENTS ||
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
    if (!predicted || !predictor->following) {
        resync(predictor);
    }
    if (predictor->following && predictor->count >= predictor->measure_at &&
        marked_steps(predictor) == 0) {
        measure_step(predictor);
    }
    watch_step(predictor);
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

uint64_t spw_migrate_predictor_period(const struct spw_predictor *predictor)
{
    uint64_t distance = repeat_distance(predictor);
    uint64_t marked = distance > 0 ? marked_period(predictor) : 0;

    return marked > 0 ? marked : distance > 0 && predictor->step > 0 ? predictor->step : distance;
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
    uint64_t end = predictor->cursor +
                   spw_min(spw_migrate_predictor_period(predictor), repeat_distance(predictor));

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
