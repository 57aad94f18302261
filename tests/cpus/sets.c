/* sets.c: prints the kernel sets that this processor gets. */
#include <stdio.h>

#include "quant/kernels.h"
#include "quant/panel.h"

int main(void)
{
    printf("%s %s\n", kernels_get(NULL)->name, panel_kernels_get(NULL)->name);
    return 0;
}
