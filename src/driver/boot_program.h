#pragma once
/* boot_program - the part of a boot script that fetches this program. */
struct buf;

/* Defines the shell function `program`: from the first of the URLs ("'https://a/x' 'https://b/y'") that has
 * it, it puts the program of that SHA-256 into ./regatta, with curl, wget or python3; false if none has it.
 * No certificate is checked: the sum is. */
void boot_program_put(const char *urls, const char *sha256, struct buf *out);
