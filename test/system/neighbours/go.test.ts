/**
 * A Go server: net/http sends people to the clean spelling of a path, and routes by the escaped path as GitLab's and
 * RabbitMQ's clients need it.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, outputOf, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'files/docs'), { recursive: true });
writeFileSync(join(folder, 'files/docs/50%de.txt'), 'half\n');
writeFileSync(
  join(folder, 'main.go'),
  `package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	mux := http.NewServeMux()
	mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir("files"))))
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a part")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	// The names of projects and queues are one segment, with their slashes encoded.
	segments := func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(strings.Split(r.URL.EscapedPath(), "/"))
	}
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			segments(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})))
}
`,
);
await outputOf(['go', 'build', '-o', 'server', 'main.go'], {
  cwd: folder,
  env: { GOCACHE: join(folder, 'cache'), GO111MODULE: 'off', GOFLAGS: '' },
});
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [join(folder, 'server'), `127.0.0.1:${port}`],
});

t.test('a folder without its slash, and other paths that Go cleans', async (t) => {
  const replies = await neighbour.same(t, 'follows', (way) => follow(way, '/files/docs'));
  t.match(replies, [{ status: 301 }, { status: 200, body: 'href="50%25de.txt"' }]);
  t.match(await neighbour.same(t, 'the root of a tree', (way) => follow(way, '/files')), [
    { status: 301 },
    { status: 200 },
  ]);
  const file = await neighbour.same(t, 'a file', (way) => ask(way, '/files/docs/50%25de.txt'));
  t.match(file, { status: 200, body: 'half\n' });
  for (const path of ['/files//docs/', '/files/docs//50%25de.txt', '/%66iles/docs/', '/files%2Fdocs/'])
    await neighbour.same(t, path, (way) => ask(way, path));
});

t.test('encoded slashes, as the clients of GitLab and RabbitMQ send them', async (t) => {
  for (const [path, segments] of [
    ['/api/v4/projects/group%2Fname/issues', ['', 'api', 'v4', 'projects', 'group%2Fname', 'issues']],
    ['/api/queues/%2F/orders', ['', 'api', 'queues', '%2F', 'orders']],
    ['/api/queues/%2f/a%5Cb%25', ['', 'api', 'queues', '%2f', 'a%5Cb%25']],
  ] as const) {
    const { body } = await neighbour.same(t, path, (way) => ask(way, path));
    t.strictSame(JSON.parse(body), segments);
  }
});

t.test('bodies both ways, and a reply that is cut', async (t) => {
  const body = Buffer.alloc(300_000, 'go ');
  for (const pieces of [undefined, 40_000]) {
    const sent = { method: 'POST', body, ...(pieces === undefined ? {} : { pieces }) };
    const reply = await neighbour.same(t, `pieces of ${pieces}`, (way) => ask(way, '/echo', sent));
    t.equal(reply.body.length, 300_000);
  }
  await neighbour.same(t, 'the client sees that it is cut', async (way) => {
    await t.rejects(ask(way, '/cut'), { code: 'ECONNRESET' }, way.name);
  });
});
