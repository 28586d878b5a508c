/** Removes text that a collector puts before the lines of a log: Docker Compose, Kubernetes, syslog and the journal. */

const ISO_TIME = String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`;
/** The host and the program, such as `host nginx[123]: `. */
const TAG = String.raw`\S+ [^\s:[]+(?:\[\d+\])?: `;
const PREFIX = new RegExp(
  [
    // `docker compose logs` and `docker service logs`
    String.raw`\S+ +\| `,
    // `kubectl logs --prefix`
    String.raw`\[pod\/\S+\] `,
    // RFC 5424
    String.raw`<\d+>1 ${ISO_TIME} \S+ \S+ \S+ \S+ (?:-|\[.*?\]) `,
    // RFC 3164, and `journalctl` with -o short, short-full, short-unix and short-monotonic
    String.raw`(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ${TAG}`,
    String.raw`[A-Z][a-z]{2} ${ISO_TIME} [A-Z]\S+ ${TAG}`,
    String.raw`(?:\d+\.\d+|\[ *\d+\.\d+\]) ${TAG}`,
    // Other forms of syslog and journal, CRI, and logs with `--timestamps`
    `${ISO_TIME} ${TAG}`,
    `${ISO_TIME} (?:std(?:out|err) [FP] )?`,
  ]
    .map((form) => `^${form}`)
    .join('|'),
);

/** A line may have a prefix of the container and one of the machine. */
const PREFIXES_MAX = 3;

export function withoutPrefix(line: string): string {
  let rest = line;
  for (let i = 0; i < PREFIXES_MAX; i++) {
    const [prefix] = PREFIX.exec(rest) ?? [];
    if (prefix === undefined) break;
    rest = rest.slice(prefix.length);
  }
  return rest;
}
