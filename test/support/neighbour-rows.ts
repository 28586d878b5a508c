/**
 * The programs that the tests of test/system/neighbours run the gateway with. The runner reads from here what a file
 * needs, and test/system/neighbours/README.md has these rows.
 */
import type { Program } from '#test/runner/servers.ts';

export interface NeighbourRow {
  /** Name of the test in test/system/neighbours, without its ending. */
  readonly file: string;
  readonly is: 'application' | 'client';
  /** For readers. */
  readonly name: string;
  /** Those that the file starts. */
  readonly programs: readonly Program[];
  /** The actions of the client: "lists folders, follows redirects". */
  readonly tried: string;
}

/** The steps of each client, which test/system/neighbours/README.md lists once, see test/support/clients/demo.ts. */
const STEPS = 'the usual steps';

export const NEIGHBOURS: readonly NeighbourRow[] = [
  {
    file: 'nginx',
    is: 'application',
    name: 'NGINX, static files',
    programs: ['nginx'],
    tried: 'a folder without its slash, lists of folders, ranges, conditional requests',
  },
  {
    file: 'interim',
    is: 'application',
    name: 'Puma, Go and Node, with early hints',
    programs: ['puma', 'go', 'curl'],
    tried: '102 and 103 before the reply, read by curl and by Node; none for HTTP/1.0',
  },
  {
    file: 'git',
    is: 'application',
    name: 'git http-backend behind Apache httpd',
    programs: ['git', 'apache2', 'curl'],
    tried: 'push with a length and in chunks, clone, shallow clone, fetch, `Expect: 100-continue`',
  },
  {
    file: 'apache',
    is: 'application',
    name: 'Apache httpd, folders and WebDAV',
    programs: ['apache2', 'cadaver'],
    tried:
      'a folder without its slash, lists of folders, files with odd names; cadaver makes, copies, moves and locks',
  },
  {
    file: 'django',
    is: 'application',
    name: 'Django',
    programs: ['/usr/bin/python3', '/usr/lib/python3/dist-packages/django/__init__.py'],
    tried: 'a missing slash at the end, encoded slashes, a form with its token, sessions, a stream',
  },
  {
    file: 'fastapi',
    is: 'application',
    name: 'FastAPI on uvicorn',
    programs: ['uvicorn', '/usr/lib/python3/dist-packages/fastapi/__init__.py'],
    tried:
      'a slash at the end that is missing or too much, bodies with and without a length, events, WebSocket',
  },
  {
    file: 'go',
    is: 'application',
    name: 'a Go server',
    programs: ['go'],
    tried:
      "folders without their slash, `//`, encoded slashes as GitLab's and RabbitMQ's clients send them, a reply that is cut",
  },
  {
    file: 'php',
    is: 'application',
    name: 'a PHP application on the server of PHP',
    programs: ['php'],
    tried: 'a path behind the name of the script, redirects to one spelling, forms, cookies, an upload',
  },
  {
    file: 'prometheus',
    is: 'application',
    name: 'Prometheus',
    programs: ['prometheus'],
    tried: 'its page with its redirects, queries with GET and POST',
  },
  {
    file: 'puma',
    is: 'application',
    name: 'a Rack application on Puma',
    programs: ['puma', 'rackup'],
    tried: 'a missing slash at the end, encoded slashes, an upload, a stream',
  },
  {
    file: 'python-http',
    is: 'application',
    name: "Python's http.server",
    programs: ['/usr/bin/python3'],
    tried: 'a folder without its slash, its list, a file with a percent sign in its name',
  },
  {
    file: 'radicale',
    is: 'application',
    name: 'Radicale (CalDAV)',
    programs: ['radicale'],
    tried: 'a calendar is made, filled, searched, moved and deleted',
  },
  {
    file: 'rclone',
    is: 'application',
    name: 'rclone, WebDAV and files',
    programs: ['rclone'],
    tried: 'copies there and back, lists, moves; files with odd names, such as `50%de.txt`',
  },
  {
    file: 'restic',
    is: 'application',
    name: "restic on rclone's REST server",
    programs: ['restic', 'rclone'],
    tried: 'a repository is made, filled, checked, pruned and restored',
  },
  {
    file: 'tomcat',
    is: 'application',
    name: 'Tomcat',
    programs: ['/usr/share/tomcat10/bin/catalina.sh'],
    tried:
      'contexts and folders without their slash, path parameters such as `;jsessionid=1`, PUT and DELETE',
  },
  {
    file: 'socket-io',
    is: 'application',
    name: 'Socket.IO',
    programs: ['socket.io'],
    tried: 'polling, WebSocket, and the change from one to the other',
  },
  {
    file: 'verdaccio',
    is: 'application',
    name: 'Verdaccio with npm',
    programs: ['verdaccio'],
    tried: '`npm publish`, `npm install` and `npm dist-tag` of `@scope/name`',
  },
  {
    file: 'node-red',
    is: 'application',
    name: 'Node-RED',
    programs: ['node-red'],
    tried: 'its editor, a flow that is deployed and answers requests, the WebSocket of the editor',
  },
  {
    file: 'curl-client',
    is: 'client',
    name: 'curl',
    programs: ['curl'],
    tried: `${STEPS}, chunked upload, \`Expect: 100-continue\`, cookies, events`,
  },
  {
    file: 'wget-client',
    is: 'client',
    name: 'GNU Wget',
    programs: ['wget'],
    tried: `${STEPS}, cookies, resumed download`,
  },
  {
    file: 'java-client',
    is: 'client',
    name: 'Java 17, `java.net.http`',
    programs: ['javac', 'nginx', 'haproxy', 'apache2'],
    tried: `${STEPS}, chunked upload, \`Expect: 100-continue\`, cookies, events; WebSocket, also with NGINX, HAProxy or Apache in front`,
  },
  {
    file: 'go-client',
    is: 'client',
    name: 'Go, `net/http`',
    programs: ['go'],
    tried: `${STEPS}, chunked upload, \`Expect: 100-continue\`, cookies, events`,
  },
  {
    file: 'python-client',
    is: 'client',
    name: 'Python, requests and httpx',
    programs: [
      '/usr/bin/python3',
      '/usr/lib/python3/dist-packages/requests/__init__.py',
      '/usr/lib/python3/dist-packages/httpx/__init__.py',
    ],
    tried: `${STEPS}, chunked upload, cookies, events`,
  },
  {
    file: 'node-client',
    is: 'client',
    name: 'Node.js, `fetch` (undici) and `WebSocket`',
    programs: [],
    tried: `${STEPS}, chunked upload, events, WebSocket`,
  },
  {
    file: 'php-client',
    is: 'client',
    name: 'PHP, curl and streams',
    programs: ['php', '/usr/lib/php/20220829/curl.so'],
    tried: `${STEPS}; with curl also chunked upload, \`Expect: 100-continue\` and cookies`,
  },
  {
    file: 'perl-client',
    is: 'client',
    name: 'Perl, LWP',
    programs: ['/usr/share/perl5/LWP.pm'],
    tried: `${STEPS}, chunked upload, \`Expect: 100-continue\`, cookies, events`,
  },
  {
    file: 'chromium-client',
    is: 'client',
    name: 'Chromium',
    programs: ['chromium'],
    tried: `${STEPS} with \`fetch\`, cookies, a form with a file, EventSource, WebSocket`,
  },
];

/** @param file path of a test in test/system/neighbours */
export function rowOf(file: string): NeighbourRow | undefined {
  return NEIGHBOURS.find(({ file: name }) => file.endsWith(`/${name}.test.ts`));
}
