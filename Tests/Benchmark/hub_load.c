// Sends small saves over TLS from many connections at once, one request after the other on each, and tells how many were
// answered and how long they took (see mount-scripts/benchmark --hub).
//
//   hub_load hub|put SECONDS <CONNECTIONS
//
// A line of CONNECTIONS is `PORT TOKEN SERIAL`: where one connection goes, its session at a hub (`-` for none), and the
// number before its first save. `hub` sends documents to /v1/sends, and `put` puts the same files into /N, where N is
// the connection's number.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4096, MOST = 256, MOST_TIMES = 1 << 20 };

static SSL_CTX *context;
static int is_hub;
static double seconds;

struct connection {
  pthread_t thread;
  int number, port;
  char token[256];
  long serial, done, failed;
  unsigned long long random;
  float *times;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static unsigned long long next(struct connection *self) {
  unsigned long long value = self->random += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

static void uuid(struct connection *self, char *text) {
  unsigned long long a = next(self), b = next(self);
  sprintf(text, "%08llx-%04llx-4%03llx-a%03llx-%012llx", a >> 32, a >> 16 & 0xffff, a & 0xfff, b >> 52, b & 0xffffffffffffull);
}

static SSL *dial(int port) {
  int file = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(file, (struct sockaddr *)&address, sizeof address) != 0) return NULL;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  SSL *ssl = SSL_new(context);
  SSL_set_fd(ssl, file);
  if (SSL_connect(ssl) != 1) return NULL;
  return ssl;
}

// Reads one answer; returns its status, or 0.
static int answer(SSL *ssl) {
  static __thread char buffer[65536];
  size_t length = 0;
  long body = -1;
  char *end = NULL;
  while (!end || length < (size_t)(end - buffer) + (body < 0 ? 0 : body)) {
    int count = SSL_read(ssl, buffer + length, sizeof buffer - 1 - length);
    if (count <= 0) return 0;
    length += count;
    buffer[length] = 0;
    if (!end && (end = strstr(buffer, "\r\n\r\n"))) {
      end += 4;
      for (char *line = buffer; line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, "content-length:", 15) == 0) body = atol(line + 15);
    }
  }
  return atoi(buffer + 9);
}

static void *run(void *argument) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  struct connection *self = argument;
  static __thread char body[SIZE * 2], request[SIZE * 2 + 1024];
  unsigned char bytes[SIZE];
  SSL *ssl = dial(self->port);
  if (!ssl) {
    self->failed = 1;
    return NULL;
  }
  double start = now(), end = start + seconds;
  for (double began = start; began < end && self->done < MOST_TIMES;) {
    for (int place = 0; place < SIZE; place += 8) {
      unsigned long long value = next(self);
      memcpy(bytes + place, &value, 8);
    }
    int length;
    self->serial++;
    if (is_hub) {
      char item[40], version[40], text[SIZE * 4 / 3 + 8];
      uuid(self, item);
      uuid(self, version);
      char *out = text;
      for (int place = 0; place < SIZE; place += 3) {
        int left = SIZE - place;
        unsigned value = bytes[place] << 16 | (left > 1 ? bytes[place + 1] << 8 : 0) | (left > 2 ? bytes[place + 2] : 0);
        *out++ = digits[value >> 18];
        *out++ = digits[value >> 12 & 63];
        *out++ = left > 1 ? digits[value >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[value & 63] : '=';
      }
      *out = 0;
      int size = sprintf(
          body,
          "{\"confirmed\":%ld,\"groups\":[[{\"serial\":%ld,\"item\":\"%s\",\"kind\":\"document\",\"mode\":420,\"mtime\":0,"
          "\"places\":[{\"parent\":\"00000000-0000-0000-0000-000000000000\",\"name\":\"f-%d-%ld\"}],"
          "\"version\":{\"id\":\"%s\",\"cause\":\"save\",\"time\":0,\"contents\":\"%s\"}}]]}",
          self->serial - 1, self->serial, item, self->number, self->serial, version, text);
      length = sprintf(
          request,
          "POST /v1/sends HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
          "Content-Length: %d\r\n\r\n%s",
          self->token, size, body);
    } else {
      length = sprintf(
          request, "PUT /%d/f-%ld HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", self->number, self->serial,
          SIZE);
      memcpy(request + length, bytes, SIZE);
      length += SIZE;
    }
    int status = SSL_write(ssl, request, length) == length ? answer(ssl) : 0;
    double ended = now();
    if (status >= 200 && status < 300) {
      self->times[self->done++] = ended - began;
    } else {
      if (self->failed++ == 0) fprintf(stderr, "connection %d: status %d\n", self->number, status);
      if (status == 0) break;
    }
    began = ended;
  }
  return NULL;
}

static int compare(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: hub_load hub|put SECONDS <CONNECTIONS\n");
    return 64;
  }
  is_hub = strcmp(arguments[1], "hub") == 0;
  seconds = atof(arguments[2]);
  signal(SIGPIPE, SIG_IGN);
  context = SSL_CTX_new(TLS_client_method());
  // The servers are this machine's own, with certificates that nobody signed.
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
  static struct connection all[MOST];
  int number = 0;
  while (number < MOST && scanf("%d %255s %ld", &all[number].port, all[number].token, &all[number].serial) == 3) {
    struct connection *self = &all[number];
    self->number = number++;
    self->random = time(NULL) * 1000003ull + self->number * 7919ull;
    self->times = malloc(MOST_TIMES * sizeof(float));
  }
  double start = now();
  for (int index = 0; index < number; index++) pthread_create(&all[index].thread, NULL, run, &all[index]);
  for (int index = 0; index < number; index++) pthread_join(all[index].thread, NULL);
  double took = now() - start;
  long done = 0, failed = 0;
  for (int index = 0; index < number; index++) {
    done += all[index].done;
    failed += all[index].failed;
  }
  float *times = malloc((done + 1) * sizeof(float));
  long place = 0;
  for (int index = 0; index < number; index++) {
    memcpy(times + place, all[index].times, all[index].done * sizeof(float));
    place += all[index].done;
  }
  qsort(times, done, sizeof(float), compare);
  printf(
      "{\"done\":%ld,\"failed\":%ld,\"seconds\":%.3f,\"median\":%.6f,\"p99\":%.6f,\"serials\":[", done, failed, took,
      done ? times[done / 2] : 0, done ? times[done * 99 / 100] : 0);
  for (int index = 0; index < number; index++) printf("%s%ld", index ? "," : "", all[index].serial);
  printf("]}\n");
  return done == 0;
}
