/* SPDX-License-Identifier: Apache-2.0 */
/* file_server FOLDER LOG: serves the files of a folder on 127.0.0.1 by HTTP, well or badly, for tests of downloads.
 * Prints its port, writes a line "KIND NAME RANGE" for each request to the log and ends with its parent.
 *
 * A path is /KIND/NAME. Kinds:
 *   good       knows ranges                       no-range   sends all, whatever is asked for
 *   cut        ends half way, unless a range is asked for
 *   shifted    answers a range from another byte  no-resume  answers 416 if a range is asked for
 *   moved      sends the client to /good/NAME     stall      answers and then sends nothing
 *   endless    sends zeros without end            slow       sends 8 MB in a second
 *   wrong      turns the last byte round          404, 500…  answers with that status */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST = 8192, PIECE = 1 << 16, WORD = 256, SLOW_PIECES = 128 };

typedef struct request {
  char kind[WORD], name[WORD];
  bool has_range;
  long long first; /* byte that is asked for */
} request;

static bool send_all(int client, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t sent = send(client, data, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    bytes -= (size_t)sent;
  }
  return true;
}

static void send_head(int client, const char *status, const char *fields) {
  char head[2 * WORD + REQUEST];
  int length = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nConnection: close\r\n%s\r\n", status, fields);
  send_all(client, head, (size_t)length);
}

/* Reads up to the empty line. False: not a request. */
static bool read_request(int client, request *r) {
  char text[REQUEST + 1];
  size_t length = 0;
  do {
    ssize_t got = recv(client, text + length, REQUEST - length, 0);
    if (got <= 0) return false;
    length += (size_t)got;
    text[length] = '\0';
  } while (length < REQUEST && !strstr(text, "\r\n\r\n"));
  *r = (request){.has_range = false};
  if (sscanf(text, "GET /%255[^/ ]/%255[^/ ] HTTP", r->kind, r->name) != 2) return false;
  const char *range = strcasestr(text, "\r\nRange: bytes=");
  r->has_range = range && sscanf(range, "\r\n%*[^=]=%lld-", &r->first) == 1;
  return true;
}

static bool is(const request *r, const char *kind) {
  return strcmp(r->kind, kind) == 0;
}

/* Sends so many bytes of a file, in the manner of the kind. */
static void send_file(int client, const request *r, int file, long long bytes) {
  static char piece[PIECE];
  while (bytes > 0) {
    ssize_t got = read(file, piece, bytes < PIECE ? (size_t)bytes : PIECE);
    if (got <= 0) return;
    bytes -= got;
    if (bytes == 0 && is(r, "wrong")) piece[got - 1] ^= 1;
    if (!send_all(client, piece, (size_t)got)) return;
    if (is(r, "slow")) nanosleep(&(struct timespec){.tv_nsec = 1000000000 / SLOW_PIECES}, NULL);
  }
}

static void send_endless(int client) {
  static const char zeros[PIECE];
  send_head(client, "200 OK", "");
  while (send_all(client, zeros, sizeof zeros)) {
  }
}

static void answer_with_file(int client, const request *r, int file, long long size) {
  char fields[3 * WORD];
  bool part = r->has_range && !is(r, "no-range");
  if (part && (is(r, "no-resume") || r->first >= size)) {
    send_head(client, "416 Range Not Satisfiable", "Content-Length: 0\r\n");
    return;
  }
  long long first = !part ? 0 : is(r, "shifted") && r->first > 0 ? r->first - 1 : r->first;
  int length = snprintf(fields, sizeof fields, "Content-Length: %lld\r\n", size - first);
  if (part) {
    snprintf(fields + length, sizeof fields - (size_t)length, "Content-Range: bytes %lld-%lld/%lld\r\n", first,
             size - 1, size);
  }
  send_head(client, part ? "206 Partial Content" : "200 OK", fields);
  if (is(r, "stall")) {
    pause();
  } else if (lseek(file, first, SEEK_SET) == first) {
    send_file(client, r, file, is(r, "cut") && !part ? size / 2 : size - first);
  }
}

static void answer(int client, const request *r, const char *folder) {
  char text[2 * WORD + REQUEST];
  struct stat about;
  if (r->kind[0] >= '1' && r->kind[0] <= '9') {
    snprintf(text, sizeof text, "%s Status", r->kind);
    send_head(client, text, "Content-Length: 0\r\n");
  } else if (is(r, "moved")) {
    snprintf(text, sizeof text, "Location: /good/%s\r\nContent-Length: 0\r\n", r->name);
    send_head(client, "302 Found", text);
  } else if (is(r, "endless")) {
    send_endless(client);
  } else {
    snprintf(text, sizeof text, "%s/%s", folder, r->name);
    int file = open(text, O_RDONLY);
    if (file < 0 || fstat(file, &about) != 0) {
      send_head(client, "404 Not Found", "Content-Length: 0\r\n");
    } else {
      answer_with_file(client, r, file, (long long)about.st_size);
    }
    if (file >= 0) close(file);
  }
}

/* In a process of its own: does not return. */
static void serve(int client, const char *folder, int log) {
  request r;
  if (read_request(client, &r)) {
    char range[32] = "-";
    if (r.has_range) snprintf(range, sizeof range, "%lld", r.first);
    dprintf(log, "%s %s %s\n", r.kind, r.name, range);
    answer(client, &r, folder);
  }
  shutdown(client, SHUT_WR);
  _exit(EXIT_SUCCESS);
}

int main(int argument_count, char **arguments) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int log = argument_count == 3 ? open(arguments[2], O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  if (log < 0 || server < 0 || bind(server, (struct sockaddr *)&address, length) != 0 || listen(server, 16) != 0 ||
      getsockname(server, (struct sockaddr *)&address, &length) != 0) {
    perror("file_server FOLDER LOG");
    return EXIT_FAILURE;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  signal(SIGCHLD, SIG_IGN);
  printf("%d\n", ntohs(address.sin_port));
  fclose(stdout); /* whoever reads the port sees the end */
  for (;;) {
    int client = accept(server, NULL, NULL);
    if (client < 0) continue;
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      serve(client, arguments[1], log);
    }
    close(client);
  }
}
