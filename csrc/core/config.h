/* config.h - the values of options from GRAPE6_CONFIG's file, GRAPE6_CLIENT and the environment. */
#pragma once

struct options;
struct process_options;

/* Reads the client first, since other options may override what it sets; the file before the
 * environment. The first error becomes process->problem. */
void config_read(struct process_options *process, struct options *initial);
