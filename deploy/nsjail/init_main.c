/* The program that nsjail runs as process 1 of a jail. */
#include "init.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc < 2) return 125;
    return serve_request(atoi(argv[1]), argv + 2);
}
