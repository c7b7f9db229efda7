/* SPDX-License-Identifier: Apache-2.0
 * Whether a file is what it says: nothing that the driver does for it, or has the hardware do, reaches further. */
#ifndef CAESURA_CHECK_H
#define CAESURA_CHECK_H

#include <stddef.h>

/* What is wrong with the file of `size` bytes at `file`, a multiple of 8, as words for people; NULL if nothing is. */
const char *caesura_flat_problem(const void *file, size_t size);

#endif
