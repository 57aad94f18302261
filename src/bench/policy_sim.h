/* policy_sim.h: how often a ring of a given size would find an expert, under a given policy.
 *
 * A demand is what one layer of one pass needs at the same time: its distinct experts. They are in
 * the ring together when the demand ends (one of more experts than slots is taken in pieces), so a
 * policy chooses victims among all others only. */
#ifndef BENCH_POLICY_SIM_H
#define BENCH_POLICY_SIM_H

#include "bench/trace.h"

enum policy {
    POLICY_LRU, /* the victim was used longest ago */
    POLICY_LFU, /* used least often; a use counts half after half_life passes */
    POLICY_OPT, /* needed again last (Belady 1966): what no policy can beat, for it sees ahead */
    N_POLICIES
};

typedef struct policy_result {
    uint64_t n_asked, n_hits;           /* the whole trace, from an empty ring */
    uint64_t n_asked_warm, n_hits_warm; /* its second half, the ring as the first left it */
    uint64_t n_tokens_warm;
} policy_result;

const char *policy_name(enum policy policy); /* "lru", "lfu", "optimum" */

/* n_slots >= 1; half_life > 0, in passes, for POLICY_LFU only. */
smoe_status policy_simulate(const trace *t, enum policy policy, uint32_t n_slots, double half_life,
                            policy_result *out, smoe_err *err);

#endif
