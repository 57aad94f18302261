/* server.c: the socket side, over libmicrohttpd: one thread per connection, so that a request may
 * wait for the engine and a client may be slow without holding anybody up.
 *
 * Time limits are ours: a watch hangs up on clients that take too long to send a request or to take
 * a piece of a reply, however often a byte of it moves. */
#include "http/http.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/exchange.h"
#include "http/wait.h"

enum {
    HEADERS_MAX_BYTES = 64 << 10, /* one request's headers; the library answers 431 beyond */
    STREAM_BLOCK_BYTES = 16 << 10,
    STACK_BYTES = 4 << 20,        /* parsers and templates recurse, within limits of their own */
    BACKLOG = 128,
    WATCH_MS = 250,
    BODY_PATIENCE = 4,            /* a body may take so many times client_s */
    IDLE_PATIENCE = 2,            /* and the next request on a connection so many times */
    FLUSH_MS = 3000,              /* for the last bytes of replies when the server ends */
};

/* One connection, as the watch sees it. */
typedef struct peer_link {
    struct peer_link *next, **prev;
    int fd;               /* our own duplicate: nobody else's number while we hold it */
    uint64_t deadline_ns; /* 0 = the client is not waited for */
    char peer[INET6_ADDRSTRLEN + 8];
} peer_link;

struct http_server {
    http_core core;
    const http_options *options;
    struct MHD_Daemon *daemon;
    int listen_fd;
    uint16_t port;
    bool has_worker, has_watch;
    pthread_t watch;
    pthread_mutex_t lock;  /* of the list and of ended */
    pthread_cond_t changed;
    peer_link *links;
    bool ended;
};

/* What one request has between the library's calls. */
typedef struct call {
    http_server *server;
    peer_link *link;
    exchange exchange;
} call;

static void give_time(http_server *s, peer_link *l, unsigned seconds)
{
    pthread_mutex_lock(&s->lock);
    l->deadline_ns = seconds != 0 ? clock_ns() + (uint64_t)seconds * 1000000000u : 0;
    pthread_mutex_unlock(&s->lock);
}

static void *watch(void *opaque)
{
    http_server *s = opaque;
    pthread_mutex_lock(&s->lock);
    while (!s->ended) {
        uint64_t now_ns = clock_ns();
        for (peer_link *l = s->links; l != NULL; l = l->next) {
            if (l->deadline_ns != 0 && now_ns > l->deadline_ns) {
                shutdown(l->fd, SHUT_RDWR);
                l->deadline_ns = 0;
            }
        }
        wait_until(&s->changed, &s->lock, now_ns + WATCH_MS * 1000000ull);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- connections come and go ---- */

static void name_peer(struct MHD_Connection *c, char *text, size_t size)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *text = '\0';
    if (info != NULL && info->client_addr != NULL) {
        socklen_t n = info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                               : sizeof(struct sockaddr_in);
        getnameinfo(info->client_addr, n, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
    }
}

/* NULL: there is no room to watch it, so it has been hung up on. */
static peer_link *peer_link_new(http_server *s, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info != NULL ? fcntl(info->connect_fd, F_DUPFD_CLOEXEC, 3) : -1;
    peer_link *l = fd >= 0 ? mem_calloc(1, sizeof *l) : NULL;
    if (l == NULL) {
        if (info != NULL) {
            shutdown(info->connect_fd, SHUT_RDWR);
        }
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    l->fd = fd;
    l->deadline_ns = clock_ns() + (uint64_t)s->options->client_s * 1000000000u;
    name_peer(c, l->peer, sizeof l->peer);
    pthread_mutex_lock(&s->lock);
    l->next = s->links;
    l->prev = &s->links;
    if (l->next != NULL) {
        l->next->prev = &l->next;
    }
    s->links = l;
    pthread_mutex_unlock(&s->lock);
    return l;
}

static void peer_link_free(http_server *s, peer_link *l)
{
    pthread_mutex_lock(&s->lock);
    *l->prev = l->next;
    if (l->next != NULL) {
        l->next->prev = l->prev;
    }
    pthread_mutex_unlock(&s->lock);
    close(l->fd);
    mem_free(l);
}

static void on_connection(void *opaque, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    http_server *s = opaque;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        atomic_fetch_add(&s->core.n_connections, 1);
        *socket_context = peer_link_new(s, c);
    } else {
        atomic_fetch_sub(&s->core.n_connections, 1);
        if (*socket_context != NULL) {
            peer_link_free(s, *socket_context);
        }
        *socket_context = NULL;
    }
}

/* ---- requests ---- */

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static uint64_t content_length(struct MHD_Connection *c)
{
    const char *text = header(c, "Content-Length");
    uint64_t n = 0;
    for (; text != NULL && *text >= '0' && *text <= '9'; text++) {
        n = n > UINT64_MAX / 10 - 1 ? UINT64_MAX / 10 - 1 : n * 10 + (uint64_t)(*text - '0');
    }
    return n;
}

static call *call_new(http_server *s, struct MHD_Connection *c, const char *method,
                      const char *path)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    peer_link *l = info != NULL ? info->socket_context : NULL;
    call *k = l != NULL ? mem_calloc(1, sizeof *k) : NULL;
    if (k == NULL) {
        return NULL;
    }
    guard_headers headers = {
        .authorization = header(c, "Authorization"),
        .api_key = header(c, "x-api-key"),
        .host = header(c, "Host"),
        .origin = header(c, "Origin"),
    };
    k->server = s;
    k->link = l;
    exchange_init(&k->exchange, &s->core, method, path, &headers, content_length(c));
    k->exchange.fd = l->fd;
    k->exchange.peer = l->peer;
    give_time(s, l, BODY_PATIENCE * s->options->client_s);
    return k;
}

static ssize_t on_read(void *opaque, uint64_t position, char *data, size_t size)
{
    call *k = opaque;
    (void)position;
    give_time(k->server, k->link, 0);
    long n = exchange_read(&k->exchange, data, size);
    give_time(k->server, k->link, k->server->options->client_s);
    return n > 0    ? (ssize_t)n
           : n == 0 ? (ssize_t)MHD_CONTENT_READER_END_OF_STREAM
                    : (ssize_t)MHD_CONTENT_READER_END_WITH_ERROR;
}

static void add_headers(const exchange *x, struct MHD_Response *r)
{
    char seconds[16];
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (x->status != 204) {
        MHD_add_response_header(r, "Content-Type", x->content_type);
    }
    if (x->content_policy != NULL) {
        MHD_add_response_header(r, "Content-Security-Policy", x->content_policy);
    }
    if (x->retry_s > 0) {
        snprintf(seconds, sizeof seconds, "%u", x->retry_s);
        MHD_add_response_header(r, "Retry-After", seconds);
    }
    if (x->allow != NULL) {
        MHD_add_response_header(r, "Allow", x->allow);
    }
    if (x->status == 401) {
        MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    }
    if (x->is_stream) {
        MHD_add_response_header(r, "X-Accel-Buffering", "no");
    }
    if (x->allow_origin != NULL) {
        MHD_add_response_header(r, "Access-Control-Allow-Origin", x->allow_origin);
        MHD_add_response_header(r, "Vary", "Origin");
        MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
        MHD_add_response_header(r, "Access-Control-Allow-Headers", "*, Authorization");
    }
}

static enum MHD_Result reply(call *k, struct MHD_Connection *c)
{
    exchange *x = &k->exchange;
    struct MHD_Response *r =
        x->is_stream
            ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, on_read, k,
                                                NULL)
            : MHD_create_response_from_buffer(x->out.len, x->out.len > 0 ? x->out.data : NULL,
                                              MHD_RESPMEM_PERSISTENT);
    if (r == NULL) {
        return MHD_NO;
    }
    add_headers(x, r);
    x->n_out += x->is_stream ? 0 : x->out.len;
    give_time(k->server, k->link, k->server->options->client_s);
    enum MHD_Result result = MHD_queue_response(c, (unsigned)x->status, r);
    MHD_destroy_response(r);
    return result;
}

/* Called when the headers are complete (*slot is NULL), for each piece of the body, and at its
 * end. */
static enum MHD_Result on_request(void *opaque, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n_bytes, void **slot)
{
    http_server *s = opaque;
    call *k = *slot;
    (void)version;
    if (k == NULL) {
        *slot = k = call_new(s, c, method, path);
        if (k == NULL) {
            return MHD_NO;
        }
        /* Nobody who asks first is sent off to fetch the body; one that is too large is not read.
         */
        const char *expect = header(c, "Expect");
        bool early = k->exchange.refused && (expect != NULL || k->exchange.refusal.kind ==
                                                                   HTTP_TOO_LARGE);
        return early && exchange_answer(&k->exchange) ? reply(k, c) : MHD_YES;
    }
    if (*n_bytes > 0) {
        bool go_on = exchange_body(&k->exchange, data, *n_bytes);
        *n_bytes = 0;
        return go_on ? MHD_YES : MHD_NO;
    }
    give_time(s, k->link, 0);
    return exchange_answer(&k->exchange) ? reply(k, c) : MHD_NO;
}

static void on_completed(void *opaque, struct MHD_Connection *c, void **slot,
                         enum MHD_RequestTerminationCode why)
{
    http_server *s = opaque;
    call *k = *slot;
    (void)c;
    if (k == NULL) {
        return;
    }
    k->exchange.gone |= why != MHD_REQUEST_TERMINATED_COMPLETED_OK;
    give_time(s, k->link, IDLE_PATIENCE * s->options->client_s);
    exchange_fini(&k->exchange);
    mem_free(k);
    *slot = NULL;
}

/* ---- start and stop ---- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static smoe_status bind_to(http_server *s, const struct addrinfo *a, smoe_err *err)
{
    const http_options *o = s->options;
    int yes = 1;
    if (!is_loopback(a->ai_addr) && o->keys == NULL) {
        return err_set(err, SMOE_USAGE,
                       "--host %s can be reached from other machines; give --api-key-file FILE, or "
                       "listen on 127.0.0.1", o->host);
    }
    s->listen_fd = socket(a->ai_family, SOCK_STREAM, 0);
    if (s->listen_fd < 0 || fcntl(s->listen_fd, F_SETFD, FD_CLOEXEC) != 0 ||
        setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(s->listen_fd, a->ai_addr, a->ai_addrlen) != 0 || listen(s->listen_fd, BACKLOG) != 0) {
        return err_errno(err, SMOE_IO, "cannot listen on %s, port %u", o->host, o->port);
    }
    struct sockaddr_storage bound;
    socklen_t n = sizeof bound;
    char port[16] = "";
    if (getsockname(s->listen_fd, (struct sockaddr *)&bound, &n) == 0) {
        getnameinfo((struct sockaddr *)&bound, n, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    }
    for (const char *p = port; *p != '\0'; p++) {
        s->port = (uint16_t)(s->port * 10 + (*p - '0'));
    }
    return SMOE_OK;
}

static smoe_status open_socket(http_server *s, smoe_err *err)
{
    char port[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
    snprintf(port, sizeof port, "%u", s->options->port);
    int e = getaddrinfo(s->options->host, port, &hints, &list);
    if (e != 0) {
        return err_set(err, SMOE_USAGE, "--host %s: %s", s->options->host, gai_strerror(e));
    }
    const struct addrinfo *chosen = list;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        if (a->ai_family == AF_INET && chosen->ai_family != AF_INET) {
            chosen = a; /* "localhost" is where most clients look for it */
        }
    }
    smoe_status status = bind_to(s, chosen, err);
    freeaddrinfo(list);
    return status;
}

static smoe_status start_daemon(http_server *s, smoe_err *err)
{
    s->daemon = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC, 0, NULL, NULL,
        on_request, s, MHD_OPTION_LISTEN_SOCKET, s->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->options->max_connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADERS_MAX_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_END);
    return s->daemon != NULL ? SMOE_OK
                             : err_set(err, SMOE_INTERNAL, "the HTTP library does not start");
}

smoe_status http_server_start(const http_options *options, http_server **out, smoe_err *err)
{
    smoe_status status;
    const smoe_chat_format *format;
    http_server *s = mem_calloc(1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err, "the server", sizeof *s);
    }
    s->options = options;
    s->listen_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    wait_init(&s->changed);
    CHECK(core_init(&s->core, options, err));
    /* Not with the first request: its reader would wait for it. */
    CHECK(core_format(&s->core, &options->models[0], &format, err));
    CHECK(open_socket(s, err));
    CHECK(worker_start(&s->core.worker, options, &s->core.queue, &s->core.metrics, err));
    s->has_worker = true;
    s->has_watch = pthread_create(&s->watch, NULL, watch, s) == 0;
    CHECK(s->has_watch ? SMOE_OK : err_set(err, SMOE_NOMEM, "no thread can be made"));
    CHECK(start_daemon(s, err));
    *out = s;
    s = NULL;
out:
    http_server_stop(s, 0);
    return status;
}

uint16_t http_server_port(const http_server *s)
{
    return s->port;
}

static void pause_ms(http_server *s, unsigned ms)
{
    pthread_mutex_lock(&s->lock);
    wait_until(&s->changed, &s->lock, clock_ns() + ms * 1000000ull);
    pthread_mutex_unlock(&s->lock);
}

static void drain(http_server *s, unsigned drain_s)
{
    uint64_t end_ns = clock_ns() + (uint64_t)drain_s * 1000000000u;
    queue_close(&s->core.queue);
    while (clock_ns() < end_ns && !atomic_load(&s->core.worker.finished)) {
        pause_ms(s, 20);
    }
    worker_cancel_all(&s->core.worker);
    worker_join(&s->core.worker);
    end_ns = clock_ns() + FLUSH_MS * 1000000ull;
    while (clock_ns() < end_ns && atomic_load(&s->core.n_exchanges) > 0) {
        pause_ms(s, 20);
    }
}

void http_server_stop(http_server *s, unsigned drain_s)
{
    if (s == NULL) {
        return;
    }
    if (s->daemon != NULL) {
        MHD_quiesce_daemon(s->daemon);
        /* Who connects now is refused. Closed it may not be yet: the library's thread may still
         * look at the number, which would be another file's. */
        shutdown(s->listen_fd, SHUT_RDWR);
    }
    if (s->has_worker) {
        drain(s, drain_s);
    }
    if (s->daemon != NULL) {
        MHD_stop_daemon(s->daemon);
    }
    if (s->listen_fd >= 0) {
        close(s->listen_fd);
    }
    if (s->has_watch) {
        pthread_mutex_lock(&s->lock);
        s->ended = true;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->watch, NULL);
    }
    core_fini(&s->core);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    mem_free(s);
}
