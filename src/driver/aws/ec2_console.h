#pragma once
/* ec2_console - why a machine is silent, as far as its console shows it. */
#include <stddef.h>
#include "base/str.h"

struct aws_work;

#define EC2_CONSOLE 120 /* room for the text, with its NUL */
/* Asks for the console of an instance; "" if it cannot be had or is empty. */
void ec2_console(const struct aws_work *w, const char *id, char out[static EC2_CONSOLE]);
/* The last line of our own boot script, or the last lines at all, on one line. */
void ec2_console_tail(struct str console, char out[static EC2_CONSOLE]);
