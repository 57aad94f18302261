/* routed.h: for measuring: seeing what a session's routers choose, or choosing in their place. */
#ifndef ENGINE_ROUTED_H
#define ENGINE_ROUTED_H

#include "smoe/engine.h"

/* Called in every pass, for each sparse layer in turn, when its router has spoken: experts
 * [n_tokens][n_expert_used]. Other distinct experts may be put in their place. */
typedef void smoe_routed(void *ctx, uint32_t layer, uint32_t *experts, uint32_t n_tokens);

/* NULL ends it. */
void smoe_session_on_routed(smoe_session *session, smoe_routed *routed, void *ctx);

#endif
