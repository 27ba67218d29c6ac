/* Process 1 of a jail, see init.c. */
#ifndef LOOPWRIGHT_INIT_H
#define LOOPWRIGHT_INIT_H

/* Serves one request from the descriptor `control`, and returns the exit status of the process.
 * `warm` is the argument list of an interpreter to start beforehand, or NULL. */
int serve_request(int control, char **warm);

#endif
