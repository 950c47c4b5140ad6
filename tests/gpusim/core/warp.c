/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of a warp that do something together. Each says what it gives and waits; when the last has come, all are told
 * what they asked for.
 *
 * CUDA names the lanes that take part, and each of them that has not ended must come to the same place. With HIP those
 * take part that get there: the others have ended or wait at a barrier, which is known only when nothing else can go
 * on. */
#include "runner.h"

static unsigned first_of(const sim_runner *r, unsigned warp) {
  return warp * r->task->warp;
}

/* The lanes that there are: the last warp of a block may have fewer. */
static uint64_t existing(const sim_runner *r, unsigned warp) {
  unsigned rest = r->task->threads - first_of(r, warp);
  unsigned lanes = rest < r->task->warp ? rest : r->task->warp;
  return lanes == 64 ? ~0ull : (1ull << lanes) - 1;
}

static uint64_t ended(const sim_runner *r, unsigned warp) {
  uint64_t bits = 0;
  const sim_flag *lanes = r->ended + first_of(r, warp);
  for (unsigned i = 0; i < r->task->warp && first_of(r, warp) + i < r->task->threads; i++)
    bits |= (uint64_t)lanes[i] << i;
  return bits;
}

/* Those of `lanes` that wait at the same place with the same mask as this one. */
static uint64_t companions(const sim_runner *r, unsigned warp, uint64_t lanes, const sim_lane *lane) {
  uint64_t same = 0;
  for (uint64_t rest = lanes & r->at_warp[warp]; rest; rest &= rest - 1) {
    unsigned i = (unsigned)__builtin_ctzll(rest);
    const sim_lane *other = r->threads[first_of(r, warp) + i].lane;
    if (other->place == lane->place && other->mask == lane->mask) same |= 1ull << i;
  }
  return same;
}

/* Tells each lane of the group what it asked for. */
static bool exchange(sim_runner *r, unsigned warp, uint64_t group) {
  uint64_t values[WIDEST_WARP] = {0}, ballot = 0;
  sim_waiting *threads = r->threads + first_of(r, warp);
  for (uint64_t rest = group; rest; rest &= rest - 1) {
    unsigned i = (unsigned)__builtin_ctzll(rest);
    values[i] = threads[i].lane->value;
    ballot |= (values[i] & 1) << i;
  }
  for (uint64_t rest = group; rest; rest &= rest - 1) {
    unsigned i = (unsigned)__builtin_ctzll(rest);
    sim_lane *lane = threads[i].lane;
    lane->took_part = group;
    if (lane->gather == SIM_GATHER_VOTE) lane->value = ballot;
    if (lane->gather != SIM_GATHER_SHUFFLE) continue;
    if (lane->source >= WIDEST_WARP || !(group >> lane->source & 1)) {
      sim_runner_find(r, "shuffle from a lane that does not take part", SIM_LAUNCH_FAILED, threads[i].position,
                      "lane %u reads lane %u by %s of line %u", i, lane->source, lane->place->operation,
                      lane->place->line);
      return false;
    }
    lane->value = values[lane->source];
  }
  return true;
}

/* False: something was wrong. */
static bool release(sim_runner *r, unsigned warp, uint64_t group) {
  if (!exchange(r, warp, group)) return false;
  for (unsigned i = 0; i < r->task->warp; i++) {
    unsigned lane = r->task->descending ? r->task->warp - 1 - i : i;
    if (!(group >> lane & 1)) continue;
    unsigned number = first_of(r, warp) + lane;
    r->threads[number].lane = NULL;
    sim_runner_ready(r, number);
  }
  r->at_warp[warp] &= ~group;
  r->at_warp_count -= (unsigned)__builtin_popcountll(group);
  return true;
}

void sim_warp_meet(sim_block *block, sim_lane *lane) {
  sim_runner *r = block->runner;
  unsigned number = block->thread.number, warp = number / r->task->warp, own = number % r->task->warp;
  if (lane->mask && !(lane->mask >> own & 1)) {
    sim_runner_find(r, "warp divergence", SIM_LAUNCH_FAILED, block->thread,
                    "lane %u is not in its own mask %#llx at %s of line %u", own, lane->mask, lane->place->operation,
                    lane->place->line);
    sim_runner_leave(r);
  }
  sim_waiting *self = &r->threads[number];
  *self = (sim_waiting){r->running, block->thread, NULL, lane};
  r->at_warp[warp] |= 1ull << own;
  r->at_warp_count++;
  /* The usual case; lanes that have ended are looked for only when nothing else can go on. */
  uint64_t wanted = (lane->mask ? lane->mask : ~0ull) & existing(r, warp);
  if ((r->at_warp[warp] & wanted) == wanted && companions(r, warp, wanted, lane) == wanted && !release(r, warp, wanted))
    sim_runner_leave(r);
  sim_runner_wait(r);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * When nothing else can go on
 */

static void tell_divergence(sim_runner *r, unsigned warp, unsigned own, uint64_t missing) {
  sim_waiting *threads = r->threads + first_of(r, warp);
  unsigned other = (unsigned)__builtin_ctzll(missing);
  const sim_text_place *mine = threads[own].lane->place, *theirs = NULL;
  if (r->at_warp[warp] >> other & 1) theirs = threads[other].lane->place;
  if (!theirs) theirs = threads[other].barrier;
  sim_runner_find(r, "warp divergence", SIM_LAUNCH_FAILED, threads[own].position,
                  "lane %u is at %s of line %u with mask %#llx, but lane %u is at %s of line %u", own, mine->operation,
                  mine->line, threads[own].lane->mask, other, theirs ? theirs->operation : "nothing",
                  theirs ? theirs->line : 0);
}

/* True: some lanes go on. */
static bool settle(sim_runner *r, unsigned warp) {
  uint64_t here = existing(r, warp) & ~ended(r, warp), waiting = r->at_warp[warp];
  unsigned first = (unsigned)__builtin_ctzll(waiting);
  uint64_t missing = 0;
  for (uint64_t rest = waiting; rest; rest &= rest - 1) {
    unsigned i = (unsigned)__builtin_ctzll(rest);
    const sim_lane *lane = r->threads[first_of(r, warp) + i].lane;
    uint64_t wanted = lane->mask ? lane->mask & here : waiting;
    uint64_t come = companions(r, warp, wanted, lane);
    if (come == wanted) return release(r, warp, wanted);
    if (i == first) missing = wanted & ~come;
  }
  tell_divergence(r, warp, first, missing);
  return false;
}

bool sim_warp_settle(sim_runner *r) {
  for (unsigned warp = 0; warp < MOST_WARPS; warp++)
    if (r->at_warp[warp]) return settle(r, warp);
  return false;
}
