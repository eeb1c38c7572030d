// Sends HTTP requests to a local server at a fixed rate until its standard input ends. It then waits for the answers,
// and prints what it measured as JSON. It is not a script, so that its own delay is a small part of a millisecond.
//
//   pacer PORT CONNECTIONS PER_SECOND SEED POPULATION REQUEST SAYS
//
// A phone number replaces the word PHONE_NUMBER in REQUEST. With POPULATION 0, each request has a new number. With
// another, the numbers are those of as many requests of the same SEED. The status of an answer without SAYS counts as 0.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { most_connections = 256, most_requests = 1 << 23, text_bytes = 1 << 16 };

struct connection {
  int64_t due, idle_since;
  size_t length;
  char text[text_bytes];
};

static struct connection all[most_connections];
static struct pollfd polled[most_connections + 1];
// A ring of the idle connections: a server closes a connection that is never used.
static int idle[most_connections], next_idle, idle_count;
static int32_t latency_us[most_requests], late_us[most_requests];
static int64_t statuses[1000], answered;

static void fail(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

// Ten digits (splitmix64).
static uint64_t number_of(uint64_t seed, uint64_t index) {
  uint64_t mixed = (seed << 32) + index * UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (mixed ^ (mixed >> 31)) % UINT64_C(10000000000);
}

// Reads as much HTTP as these answers need, and returns whether the answer is complete.
static int read_answer(int index, const char *says) {
  struct connection *connection = &all[index];
  size_t room = text_bytes - 1 - connection->length;
  ssize_t count = recv(polled[index].fd, connection->text + connection->length, room, MSG_DONTWAIT);
  if (count <= 0) fail("the server closed a connection, or sent a long answer");
  connection->length += count;
  connection->text[connection->length] = 0;
  const char *end = strstr(connection->text, "\r\n\r\n");
  const char *length = strcasestr(connection->text, "\r\ncontent-length:");
  if (!end) return 0;
  size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
  if (connection->length < end + 4 - connection->text + body) return 0;
  int status = connection->length > 12 && strstr(connection->text, says) ? atoi(connection->text + 9) : 0;
  statuses[status >= 0 && status < 1000 ? status : 0] += 1;
  connection->length = 0;
  return 1;
}

static void print_list(const char *name, const int32_t *values) {
  printf(",\"%s\":[", name);
  for (int64_t index = 0; index < answered; index += 1) printf("%s%" PRId32, index ? "," : "", values[index]);
  printf("]");
}

int main(int count, char **arguments) {
  if (count != 8) fail("pacer PORT CONNECTIONS PER_SECOND SEED POPULATION REQUEST SAYS");
  int connections = atoi(arguments[2]);
  double per_second = atof(arguments[3]);
  uint64_t seed = strtoull(arguments[4], NULL, 10), population = strtoull(arguments[5], NULL, 10);
  const char *says = arguments[7];
  char *request = arguments[6], *phone = strstr(request, "PHONE_NUMBER");
  size_t request_bytes = strlen(request);
  if (!phone || connections < 1 || connections > most_connections) fail("no PHONE_NUMBER, or no such CONNECTIONS");

  // A client on another machine would not wait for the server's threads. Without the right, the delay is larger.
  sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int index = 0; index < connections; index += 1) {
    int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(socket_fd, (struct sockaddr *)&address, sizeof address)) fail("the server accepts no connection");
    polled[index] = (struct pollfd){.fd = socket_fd, .events = POLLIN};
    idle[idle_count++] = index;
  }
  polled[connections] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};

  int64_t started = now_ns(), sent = 0, total = most_requests;
  while (sent < total || idle_count < connections) {
    int64_t wait_ns = -1;
    while (idle_count && sent < total) {
      int64_t due = started + (int64_t)(sent * 1e9 / per_second), at = now_ns();
      wait_ns = due - at;
      if (wait_ns > 0) break;
      int index = idle[next_idle];
      struct connection *connection = &all[index];
      next_idle = (next_idle + 1) % connections;
      idle_count -= 1;
      uint64_t place = population ? (uint64_t)sent % population : (uint64_t)sent;
      char digits[13];
      snprintf(digits, sizeof digits, "91%010" PRIu64, number_of(seed, place));
      memcpy(phone, digits, 12);
      connection->due = due;
      // The wait for a connection is the server's.
      late_us[sent] = (at - (due > connection->idle_since ? due : connection->idle_since)) / 1000;
      if (send(polled[index].fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes)
        fail("the server closed a connection");
      sent += 1;
      wait_ns = -1;
    }
    struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    if (ppoll(polled, connections + 1, wait_ns < 0 ? NULL : &wait, NULL) < 0) fail("ppoll failed");
    int64_t at = now_ns();
    if (polled[connections].revents) {
      polled[connections].fd = -1;
      total = (int64_t)((at - started) / 1e9 * per_second) + 1;
      if (total < sent) total = sent;
      if (total > most_requests) fail("too many requests");
    }
    for (int index = 0; index < connections; index += 1) {
      if (!polled[index].revents || !read_answer(index, says)) continue;
      latency_us[answered++] = (at - all[index].due) / 1000;
      all[index].idle_since = at;
      idle[(next_idle + idle_count++) % connections] = index;
    }
  }

  printf("{\"statuses\":[");
  for (int status = 0, printed = 0; status < 1000; status += 1)
    if (statuses[status]) printf("%s[%d,%" PRId64 "]", printed++ ? "," : "", status, statuses[status]);
  printf("]");
  print_list("latencyUs", latency_us);
  print_list("lateUs", late_us);
  printf("}\n");
  return 0;
}
