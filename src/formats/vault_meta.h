/* vault_meta.h: the metadata that vault and scout have in common; private to formats/. */
#ifndef FORMATS_VAULT_META_H
#define FORMATS_VAULT_META_H

#include "formats/safetensors.h"

/* Checks format version, kind ("vault" or "scout") and architecture, and copies the lineage. A
 * newer version, an older one, the other kind and a foreign safetensors file each get their own
 * sentence. */
smoe_status vault_meta_check(const safetensors *st, const char *kind, char lineage[33],
                             smoe_err *err);
/* A metadata value that must be there. */
smoe_status vault_meta_need(const safetensors *st, const char *key, slice *value, smoe_err *err);

#endif
